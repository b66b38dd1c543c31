"""The process: journal, projections, recall, forgetting, the door. The only room that touches the data directory."""
