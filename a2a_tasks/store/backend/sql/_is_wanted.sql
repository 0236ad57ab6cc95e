-- The condition that event `e` is selected by a value of `WantedEvents`.
({which} = {all} or e.kind = {status} and ({which} = {states} or e.state in ({ends})))
