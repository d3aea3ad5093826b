//go:build !race

package mcp

const raceEnabled = false

// bigMessage is what the matrix calls big.
const bigMessage = 1 << 20
