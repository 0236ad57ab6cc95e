"""Following the log: `hub` hears of new events once a process and reads them once; `follow` is one reader of it."""
