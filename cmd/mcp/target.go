package main

import (
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"mcpkit/mcp"
)

// A target is the server that a command talks to: at a URL, or a child
// process.
type target struct {
	url     string
	command []string

	rawHeader []string // as given: "Name: value"
	header    http.Header
	env       []string
	stderr    bool // show the child's
}

func (t *target) flags(fs *flag.FlagSet) {
	fs.BoolVar(&t.stderr, "stderr", false, "")
	// What is wrong with a header is said later: package flag would print it.
	fs.Func("header", "", func(s string) error {
		t.rawHeader = append(t.rawHeader, s)
		return nil
	})
	fs.Func("env", "", func(s string) error {
		if strings.Index(s, "=") < 1 {
			return errors.New("not KEY=VALUE")
		}
		t.env = append(t.env, s)
		return nil
	})
}

// words splits a command line at its "--".
func words(args []string) (before, command []string) {
	if end := slices.Index(args, "--"); end >= 0 {
		return args[:end], args[end+1:]
	}
	return args, nil
}

// parseMixed reads flags and operands that may stand in any order.
func parseMixed(fs *flag.FlagSet, args []string) (operands []string, err error) {
	for len(args) > 0 {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, &usageError{fs.Name() + ": " + err.Error()}
		}
		if args = fs.Args(); len(args) > 0 {
			operands, args = append(operands, args[0]), args[1:]
		}
	}
	return operands, nil
}

// take finds the server: the command, or else the last operand, which must be
// a URL then. It returns the other operands.
func (t *target) take(name string, operands, command []string) ([]string, error) {
	t.command = command
	last := len(operands) - 1
	switch {
	case len(command) > 0 && t.rawHeader != nil:
		return nil, &usageError{name + ": -header is for a server at a URL"}
	case len(command) > 0:
		return operands, nil
	case last < 0 || !isURL(operands[last]):
		return nil, &usageError{name + ": no server: its URL comes last, or its command after --"}
	case t.env != nil || t.stderr:
		return nil, &usageError{name + ": -env and -stderr are for a server that is a child process"}
	}
	t.url = operands[last]
	if u, err := url.Parse(t.url); err != nil || u.Host == "" {
		return nil, &usageError{name + ": the server's URL makes no sense"}
	}
	t.header = http.Header{}
	for _, raw := range t.rawHeader {
		key, value, ok := strings.Cut(raw, ":")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key, " \t") {
			return nil, &usageError{name + ": -header wants 'Name: value'"}
		}
		t.header.Add(key, strings.TrimSpace(value))
	}
	return operands[:last], nil
}

func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// secrets are what must not be seen of the target: what the headers say, and
// what the URL holds beside the address.
func (t *target) secrets() (all []string) {
	for _, values := range t.header {
		for _, value := range values {
			_, credentials, _ := strings.Cut(value, " ") // after a scheme
			all = append(all, value, credentials)
		}
	}
	if u, err := url.Parse(t.url); err == nil {
		if password, ok := u.User.Password(); ok {
			all = append(all, password)
		}
		for name, values := range u.Query() {
			if secretInURL(name) {
				for _, value := range values {
					all = append(all, value, url.QueryEscape(value))
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < minSecret })
}

// transport is the way to the server. What a child writes to standard error
// goes to stderr, a line a call; what is noticed on the way over HTTP goes to
// log. tr may be nil.
func (t *target) transport(tr *tracer, stderr func(line string), log io.Writer) mcp.Transport {
	if t.url == "" {
		child := &mcp.Command{Cmd: exec.Command(t.command[0], t.command[1:]...), Stderr: stderr}
		child.Cmd.Env = t.env
		return tr.transport(child)
	}
	return &mcp.HTTP{URL: t.url, Header: t.header, Client: tr.client(), Logger: warnings(log), Auth: t.login(log)}
}

// warnings is a logger for people.
func warnings(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
