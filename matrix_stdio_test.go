//go:build unix || windows

package mcp

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// A child of its own for every server of the matrix.
var (
	_ = addMode("fixture", func() {
		if err := fixtures[os.Args[1]]().Run(context.Background(), Stdio()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	_ = addRoad(road{"stdio", everyRevision, func(t *testing.T, fixture string, c *Client) (*ClientSession, error) {
		return c.Connect(t.Context(), &Command{Cmd: childCommand("fixture", fixture), Stderr: func(line string) { t.Log("child:", line) }})
	}})
)
