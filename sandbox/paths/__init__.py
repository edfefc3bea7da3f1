"""Host paths: walked without following links, opened, granted, lent to a throw-away uid and swept afterwards."""
