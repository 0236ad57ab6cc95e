"""Workers die, are deployed and are stalled with everything at work that a worker may carry: whole stories, each of half a minute."""
