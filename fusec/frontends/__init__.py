"""Front ends: a language in, a loops program out."""
