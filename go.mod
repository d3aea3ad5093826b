module mcpkit/mcp

go 1.24
