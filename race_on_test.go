//go:build race

package mcp

// raceEnabled: the race detector makes sync.Pool forget at random.
const raceEnabled = true
