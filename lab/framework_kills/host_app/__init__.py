"""One agent, of the framework that KILLS_FRAMEWORK names. CHAT_URL is its model and the ledger of its tools."""
