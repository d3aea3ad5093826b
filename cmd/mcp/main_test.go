package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// The test program is the program itself when it is started with a command
// instead of flags: that is how the tests get a server to run as a child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	os.Exit(m.Run())
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
		{"demo now", 2, "", "mcp: demo takes no arguments"},
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
