module mcpkit/mcp

go 1.24.0

require golang.org/x/tools v0.42.0
