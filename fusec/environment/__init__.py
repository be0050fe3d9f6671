"""The environment variables: a table of all of them, and the output of FUSEC_DEBUG."""
