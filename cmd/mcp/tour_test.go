package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// children returns the child processes of this one; none where /proc is not.
func children() []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat) // gone meanwhile: no text
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == fmt.Sprint(os.Getpid()) {
			found = append(found, string(text))
		}
	}
	return found
}

func TestTour(t *testing.T) {
	code, stdout, stderr := runs(t, "", "tour")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, part := range []string{"2025-11-25", "2026-07-28", "\nStreamable HTTP, the legacy era", "\nStreamable HTTP, the modern era", "\nHTTP+SSE", "the other era ", "lift-off", "-32603", "isError: this tool always fails", "All went as expected."} {
		if !strings.Contains(stdout, part) {
			t.Errorf("nothing of %q in\n%s", part, stdout)
		}
	}
	if left := children(); left != nil {
		t.Errorf("left behind on %s: %q", runtime.GOOS, left)
	}
}

// A tour that cannot go on says where it stopped, and leaves no child either.
func TestTourFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	stdout := &cutShort{after: "call echo", then: cancel}
	var stderr bytes.Buffer
	if code := run(ctx, []string{"tour"}, nil, stdout, &stderr); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got, want := stderr.String(), "mcp: tour: The legacy era: a session, opened by initialize, 2025-11-25: call add: mcp: tools/call: context canceled\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if left := children(); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A cutShort calls then when after has been written to it.
type cutShort struct {
	after string
	then  func()
}

func (c *cutShort) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.after)) {
		c.then()
	}
	return len(p), nil
}
