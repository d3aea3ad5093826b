//go:build race

package mcp

// raceEnabled: the race detector makes sync.Pool forget at random.
const raceEnabled = true

// bigMessage is what the matrix calls big; the detector is slow.
const bigMessage = 64 << 10
