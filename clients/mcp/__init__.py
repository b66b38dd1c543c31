"""The MCP server: memd's memory for any host that speaks the Model Context Protocol over standard input and output."""
