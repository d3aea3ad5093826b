// Command mcp shows the Model Context Protocol at work and talks to any server
// that runs as a child process:
//
//	mcp demo                              a server that shows every feature
//	mcp tour                              a client that shows what demo does
//	mcp tools -- COMMAND…                 what tools a server has
//	mcp call NAME key=value -- COMMAND…   call one
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const version = "0.1.0"

const usage = `mcp shows the Model Context Protocol at work and talks to servers.

  mcp demo    a server that shows every feature, on standard input and output
  mcp tour    run the demo, use all of it in both eras, print what happens
  mcp help    this text
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// A usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// run is the program: it returns the exit code, 2 for a wrong command line
// and 1 for any other failure.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	err := dispatch(ctx, args[0], args[1:], stdin, stdout, stderr)
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "mcp: %v\nRun \"mcp help\" for how it is used.\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "mcp: %v\n", err)
	return 1
}

func dispatch(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch name {
	case "help", "-h", "-help", "--help":
		_, err := fmt.Fprint(stdout, usage)
		return err
	case "demo":
		if len(args) > 0 {
			return &usageError{"demo takes no arguments"}
		}
		return demo(ctx, stderr)
	case "tour":
		if len(args) > 0 {
			return &usageError{"tour takes no arguments"}
		}
		return tour(ctx, stdout)
	}
	return &usageError{fmt.Sprintf("there is no command %q", name)}
}
