"""Running agents: `runner` carries runs, `recorder` writes what they say, `dispatch` chooses who starts them."""
