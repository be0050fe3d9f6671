"""The languages of fusec, as LALR grammars for lark; README.md maps their rules to the IR."""
