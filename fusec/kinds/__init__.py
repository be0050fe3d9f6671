"""What each kind of kernel is: how its iteration domain becomes launches."""
