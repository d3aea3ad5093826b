// Command mcp shows the Model Context Protocol at work and talks to any server,
// at a URL or as a child process:
//
//	mcp demo                              a server that shows every feature
//	mcp tour                              a client that shows what demo does
//	mcp tools https://HOST/mcp            what tools a server has
//	mcp call NAME key=value -- COMMAND…   call one
//	mcp trace -- COMMAND…                 in its place: shows what is sent
//	mcp bridge https://HOST/mcp           a server for those who start one
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"mcpkit/mcp"
)

const version = "0.1.0"

const usage = `mcp shows the Model Context Protocol at work and talks to servers.

  mcp demo [--page N] [--http ADDR [--auth]]
              a server that shows every feature, on standard input and output,
              or over HTTP at ADDR: HOST:PORT, or a PORT of this machine only
              (0 for a free one); its lists have pages of N entries; with --auth
              it wants a token, and gives one to whoever agrees on its page
  mcp tour    run the demo, use all of it over every transport and in both
              eras, print what happens
  mcp help    this text

For any server. SERVER comes last and is the URL of one, as in
"mcp tools https://HOST/mcp", or -- and the command of one that runs as a
child process, as in "mcp tools -- COMMAND ARG…":

  mcp discover  [FLAGS] SERVER                 what the server says of itself
  mcp ping      [FLAGS] SERVER                 does it answer
  mcp tools     [FLAGS] SERVER                 list its tools
  mcp call      [FLAGS] NAME [ARGS] SERVER
                call a tool; ARGS are KEY=VALUE … or one JSON object
  mcp resources [FLAGS] SERVER                 list its resources
  mcp templates [FLAGS] SERVER                 list its resource templates
  mcp read      [FLAGS] URI SERVER             read a resource
  mcp prompts   [FLAGS] SERVER                 list its prompts
  mcp get       [FLAGS] NAME [KEY=VALUE …] SERVER
                get a prompt
  mcp complete  [FLAGS] PROMPT|TEMPLATE ARG=START [KEY=VALUE …] SERVER
                how ARG may go on; the other arguments have these values
  mcp listen    [FLAGS] [tools] [prompts] [resources] [URI …] SERVER
                print what changes: of lists (all without any) and resources
  mcp log       [FLAGS] LEVEL [NAME [ARGS]] SERVER
                print log messages from LEVEL on: of a tool that is called, or
                those that come by themselves, before 2026-07-28

A server that asks for a token gets one: the page to open is printed, and the
token is kept in the user's folder for configuration. An Authorization that is
given with --header comes first.

  mcp logout [URL]                             forget the token, or all of them

To stand between a client and a server, and pass on what they send:

  mcp trace  [FLAGS] [--http ADDR] [--full] [--to FILE] SERVER
             show the traffic: put it where a client has the server. It takes
             the server's place on standard input and output, or over HTTP at
             ADDR (as of demo). It prints to standard error, or adds to FILE,
             every message with its time, over HTTP with method, status and
             the headers that matter; long ones to the end with --full.
             Authorization, cookies, session ids, and what is called token,
             password, secret or the like are not shown. To see what a verb
             sends, give it --trace
  mcp bridge [FLAGS] URL
             let a client that starts servers as child processes reach URL, of
             any revision, HTTP+SSE too
  mcp bridge [FLAGS] --http ADDR -- COMMAND…
             let clients reach at ADDR a server that runs as a child process:
             one for each session, one in all for 2026-07-28. Batches do not
             pass, nor does taking up a stream again that broke, nor, while
             several requests want them, log messages of 2026-07-28. Pages of
             other origins are refused

Both end when either side ends. The child process gets all environment
variables, and its standard error is shown.

  --json             print the result as it came, a list page by page, changes
                     and messages one a line
  --trace            show on standard error all that is sent and received,
                     without secrets
  --version DATE     speak this revision of the protocol only
  --timeout TIME     how long to wait for an answer, or for the next sign of
                     progress (1m)
  --header 'NAME: VALUE'
                     send this with every HTTP request; may be given again; its
                     value is not printed
  --env KEY=VALUE    set a variable for the child process; may be given again
  --stderr           show what the child process writes to standard error
  --for TIME, -n COUNT
                     how long listen and log go on, and after how many; without
                     them until Ctrl-C, or the end of the server
  --call NAME        listen calls this tool first

Progress and log messages go to standard error. The exit code is 1 when
something fails, the tool that was called included, and 2 for a command line
that makes no sense.
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
	out, errs := newOutput(stdout), newOutput(stderr)
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	err := dispatch(ctx, args[0], args[1:], stdin, out, errs)
	var wrong *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(errs, "mcp: %v\nRun \"mcp help\" for how it is used.\n", err)
		return 2
	}
	text := strings.TrimPrefix(err.Error(), "mcp: ")
	if e := (*mcp.Error)(nil); errors.As(err, &e) && e.Data != nil {
		text += ": " + string(e.Data)
	}
	fmt.Fprintf(errs, "mcp: %s\n", text)
	return 1
}

func dispatch(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	switch _, isVerb := verbs[name]; {
	case isVerb:
		v := &visit{name: name, in: stdin, out: stdout, err: stderr}
		if err := v.parse(args); err == nil {
			return v.run(ctx)
		} else if !errors.Is(err, flag.ErrHelp) {
			return err
		}
		fallthrough
	case name == "help" || name == "-h" || name == "-help" || name == "--help":
		_, err := fmt.Fprint(stdout, usage)
		return err
	case name == "bridge" || name == "trace":
		j := &junction{name: name, in: stdin, out: stdout, err: stderr}
		err := j.run(ctx, args)
		if errors.Is(err, flag.ErrHelp) {
			_, err = fmt.Fprint(stdout, usage)
		}
		return err
	case name == "logout":
		return logout(ctx, args, stdout)
	case name == "demo":
		err := demo(ctx, args, stderr)
		if errors.Is(err, flag.ErrHelp) {
			_, err = fmt.Fprint(stdout, usage)
		}
		return err
	case name != "tour":
		return &usageError{fmt.Sprintf("there is no command %q", name)}
	case len(args) > 0:
		return &usageError{name + " takes no arguments"}
	}
	return tour(ctx, stdout)
}
