//go:build (unix || windows) && go1.25

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Faults of servers that are processes: real ones, this binary again.

// childServer is a server of the protocol, written without this package's, so
// that it can misbehave: on tells what happens at a message, before it is
// answered; what it returns replaces the answer.
func childServer(on func(m Message) (answer string, done bool)) {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, _, _ := decodeMessage(bytes.TrimSpace(line))
		answer, done := on(m)
		switch {
		case !m.IsRequest():
			continue
		case done:
		case m.Method == methodInitialize:
			answer = resultOfChild(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}`)
		case m.Method == methodDiscover:
			answer = `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32601,"message":"no"}}`
		default:
			answer = resultOfChild(m, `{"content":[{"type":"text","text":"fine"}]}`)
		}
		if answer != "" {
			os.Stdout.WriteString(answer + "\n")
		}
	}
}

func resultOfChild(m Message, body string) string {
	return `{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + body + `}`
}

// dies makes a child end in a way when a method comes.
func dies(method string, how func()) func() {
	return func() {
		childServer(func(m Message) (string, bool) {
			if m.Method == method {
				how()
			}
			return "", false
		})
	}
}

func boom() { fmt.Fprintln(os.Stderr, "boom"); os.Exit(3) }

var (
	_ = addMode("fault dies in a call", dies(methodToolsCall, boom))
	_ = addMode("fault dies at initialize", dies(methodInitialize, boom))
	_ = addMode("fault dies at once", boom)
	_ = addMode("fault ends in a call", dies(methodToolsCall, func() { os.Exit(0) }))
	_ = addMode("fault closes its output", dies(methodToolsCall, func() { os.Stdout.Close(); childWait() }))
	_ = addMode("fault dies of the probe", dies(methodDiscover, boom))
	_ = addMode("fault never knew the probe", func() { childServer(func(m Message) (string, bool) { return "", m.Method == methodDiscover }) })
	_ = addMode("fault noisy before it answers", func() {
		noise := bytes.Repeat([]byte("x"), 512<<10)
		childServer(func(m Message) (string, bool) {
			if m.Method == methodDiscover || m.Method == methodInitialize {
				os.Stderr.Write(noise)
				fmt.Fprintln(os.Stderr)
				for range 8192 {
					fmt.Fprintf(os.Stderr, "%063d\n", 0)
				}
			}
			return "", false
		})
	})
	_ = addMode("fault slow", func() {
		s := NewServer(Implementation{Name: "slow", Version: "1"}, nil)
		AddTool(s, Tool{Name: "nap"}, func(context.Context, *Request, struct{}) (string, error) {
			time.Sleep(300 * time.Millisecond)
			return "rested", nil
		})
		AddTool(s, Tool{Name: "stuck"}, func(context.Context, *Request, struct{}) (string, error) { select {} })
		ctx := context.Background()
		if len(os.Args) > 1 {
			d, _ := time.ParseDuration(os.Args[1])
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		}
		if err := s.Run(ctx, Stdio()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(4)
		}
	})
)

func dialChild(t *testing.T, mode string, opts ClientOptions) (*ClientSession, error) {
	t.Helper()
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &opts).Connect(t.Context(), &Command{Cmd: childCommand(mode), Grace: 200 * time.Millisecond})
	if cs != nil {
		t.Cleanup(func() { cs.Close() })
	}
	return cs, err
}

// TestFault16StderrIsRead: a server that writes a megabyte of log before each
// of its first answers is connected to like any other.
func TestFault16StderrIsRead(t *testing.T) {
	shows(t, "stdio.stderr.allowed", "stdio.stderr.no-error")
	leakCheck(t)
	cs, err := dialChild(t, "fault noisy before it answers", ClientOptions{ProbeTimeout: testPatience})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := CallTool[string](t.Context(), cs, "x", nil); err != nil || text != "fine" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestFault17ServerDies: however a server ends, every call that waits and
// every later one fails at once, and says how it ended; Connect fails.
func TestFault17ServerDies(t *testing.T) {
	shows(t, "stdio.exit.inflight", "stdio.shutdown.server-initiated", "errors.local.distinct")
	modes := map[string]string{"fault dies in a call": "exit status 3|boom", "fault ends in a call": ""}
	if runtime.GOOS != "windows" { // where the pipe ends with the process
		modes["fault closes its output"] = ""
	}
	for mode, says := range modes {
		t.Run(mode, func(t *testing.T) {
			leakCheck(t)
			cs, err := dialChild(t, mode, ClientOptions{Timeout: -1, Versions: []string{Version20251125}})
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 10)
			for range 10 {
				go func() { _, err := cs.CallTool(t.Context(), "x", nil); failed <- err }()
			}
			check := func(err error) {
				if !errors.Is(err, ErrClosed) || isPeers(err) {
					t.Errorf("the error is %v", err)
				}
				for _, part := range strings.Split(says, "|") {
					if err != nil && !strings.Contains(err.Error(), part) {
						t.Errorf("%v does not say %s", err, part)
					}
				}
			}
			for range 10 {
				check(soon(t, "the end of a call", failed))
			}
			check(cs.Ping(t.Context()))
		})
	}
	for _, mode := range []string{"fault dies at once", "fault dies at initialize"} {
		leakCheck(t)
		if _, err := dialChild(t, mode, ClientOptions{}); err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	if _, err := NewClient(Implementation{}, nil).Connect(t.Context(), &Command{Cmd: exec.Command("no-such-mcp-server")}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("no such program: %v", err)
	}
}

// TestFault20EndOfInput: a real process answers what it is at when its input
// ends, and exits by itself; it exits when a handler never returns and when
// its context ends though nothing comes in.
func TestFault20EndOfInput(t *testing.T) {
	shows(t, "stdio.shutdown.server-eof")
	const nap = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nap",` + modernMeta + `}}` + "\n"
	for _, c := range []struct {
		name, input string
		args        []string
		hold        bool // the input stays open
		want        string
		code        int
	}{
		{"nothing", "", nil, false, "", 0},
		{"a call, modern", nap, nil, false, "rested", 0},
		{"a call, legacy", initializeFrame("1", "2025-11-25", "{}") + "\n" + request("7", "tools/call", `"name":"nap"`) + "\n", nil, false, "rested", 0},
		{"a call without a line end", strings.TrimSpace(nap), nil, false, "rested", 0},
		{"a handler that never returns", strings.Replace(strings.Replace(nap, "nap", "stuck", 1), "7", "8", 1) + nap, nil, false, "rested", 0},
		{"the context ends", "", []string{"300ms"}, true, "", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			cmd := childCommand("fault slow", c.args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(in, c.input)
			if !c.hold {
				in.Close()
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(testPatience):
				cmd.Process.Kill()
				<-ended
				t.Error("the server does not exit")
			}
			in.Close()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit status %d, stderr %s", code, &stderr)
			}
			if !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
				t.Errorf("wrote %q", &out)
			}
			for line := range strings.Lines(out.String()) {
				checkFrame(t, strings.TrimSuffix(line, "\n"))
			}
		})
	}
}

// TestFault68ProbeOfRealServers: whatever an old server does with the probe, it
// is connected to by initialize.
func TestFault68ProbeOfRealServers(t *testing.T) {
	shows(t, "stdio.compat.probe", "stdio.compat.fallback-error", "stdio.compat.fallback-timeout")
	for _, mode := range []string{"fault dies of the probe", "fault never knew the probe", "fault dies in a call"} {
		t.Run(mode, func(t *testing.T) {
			leakCheck(t)
			cs, err := dialChild(t, mode, ClientOptions{ProbeTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if got := cs.Server(); got.ProtocolVersion != Version20251125 || got.Name != "child" {
				t.Errorf("connected to %+v", got)
			}
		})
	}
}
