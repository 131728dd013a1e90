"""Shows workspaces on other machines. A relay there runs monitors, and sends their events to screens here."""
