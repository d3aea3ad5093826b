package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
)

// The test program is the program itself when it is started with a command
// instead of flags: that is how the tests get a server to run as a child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		child(os.Args[1])
	}
	os.Exit(m.Run())
}

// child is a server for the tests: deaf does not answer, brief is the demo
// for a short while, environment dies with what it was given, and all others are the program itself.
func child(name string) {
	switch name {
	case "deaf":
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "brief":
		ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer stop()
		os.Exit(run(ctx, []string{"demo"}, os.Stdin, os.Stdout, os.Stderr))
	case "environment":
		other, set := os.LookupEnv("TEST_OTHER")
		fmt.Fprintf(os.Stderr, "greeting %q other %q %v\n", os.Getenv("TEST_GREETING"), other, set)
		os.Exit(1)
	}
	main()
}

// runs runs the program in this process.
func runs(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // a part of each
	}{
		{"", 2, "", "mcp tour"},
		{"help", 0, "mcp tour", ""},
		{"--help", 0, "mcp tour", ""},
		{"dance", 2, "", `mcp: there is no command "dance"`},
		{"tools --help", 0, "mcp tools", ""},
		{"demo now", 2, "", `mcp: demo: what is "now"?`},
		{"ping ./server", 2, "", "mcp: ping: no server: its URL comes last, or its command after --"},
		{"demo --page -1", 2, "", "mcp: demo: -page must be"},
		{"demo --loud", 2, "", "mcp: demo: flag provided but not defined: -loud"},
		{"demo --help", 0, "mcp demo", ""},
		{"tour now", 2, "", "mcp: tour takes no arguments"},
	} {
		code, stdout, stderr := runs(t, "", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("mcp %s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
		if (code == 0) != (stderr == "") || (code != 0) != (stdout == "") {
			t.Errorf("mcp %s: the wrong stream\n%s%s", c.args, stdout, stderr)
		}
	}
}

// What a server says cannot steer the terminal of the user.
func TestVisible(t *testing.T) {
	got := visible("a\tb\r\nc\x1b[2J\rd\u009b\u202eé世\x7f")
	if want := "a\tb\nc\\x1b[2J\\rd\\u009b\\u202eé世\\x7f"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var b bytes.Buffer
	o := &output{w: &b, terminal: true}
	if n, err := o.Write([]byte("\x1b[1m")); n != 4 || err != nil || b.String() != `\x1b[1m` {
		t.Errorf("%d, %v, %q", n, err, &b)
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Open("main.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, stream := range []any{null, file, &bytes.Buffer{}, nil} {
		if isTerminal(stream) {
			t.Errorf("%T is taken for a terminal", stream)
		}
	}
}

// Every command is in the help and in the README's table, and no other.
func TestCommandsAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "## The command line")
	table, _, _ = strings.Cut(table, "\n\n```")
	told := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for i, name := range strings.Split(cells[1], "`") {
				if i%2 == 1 {
					told[name] = true
				}
			}
		}
	}
	want := map[string]bool{"demo": true, "tour": true, "trace": true, "bridge": true, "logout": true}
	for name := range verbs {
		want[name] = true
	}
	if !maps.Equal(told, want) {
		t.Errorf("the README has %v, the program %v", told, want)
	}
	for name := range want {
		if !strings.Contains(usage, "\n  mcp "+name+" ") {
			t.Errorf("the help does not have %s", name)
		}
	}
}
