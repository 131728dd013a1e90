"""All that a task shows: its look, its times, its spans, how far a decision is. Pure; every face takes it from here."""
