//go:build unix || windows

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// childMode names the environment variable that makes the test binary a child
// of a test instead: one of childModes.
const childMode = "MCP_TEST_CHILD"

func init() {
	if mode := os.Getenv(childMode); mode != "" {
		run, ok := childModes[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such child:", mode)
			os.Exit(2)
		}
		run()
		os.Exit(0)
	}
}

// childModes are the programs that tests start. They speak lines, not the
// protocol: what the transport does must not depend on what it carries.
var childModes = map[string]func(){
	"echo": childEcho,
	"deaf": childWait,
	"late": func() { // exits by itself a while after its input ends
		childEcho()
		time.Sleep(200 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "left by itself")
	},
	"stubborn": func() { // says what is asked of it and does nothing of it
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		childEcho()
		fmt.Fprintln(os.Stderr, "eof")
		<-terms
		fmt.Fprintln(os.Stderr, "term")
		childWait()
	},
	"ignores eof": func() {
		childEcho()
		fmt.Fprintln(os.Stderr, "eof")
		childWait()
	},
	"exit 0": func() { fmt.Fprintln(os.Stderr, "usage: server FILE") },
	"boom": func() { // fails in the middle of a call
		bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Print("last words\n")
		fmt.Fprintln(os.Stderr, "boom")
		os.Exit(3)
	},
	"noisy": func() { // fills a pipe that nobody reads many times over
		os.Stderr.Write(bytes.Repeat([]byte{'x'}, 512<<10))
		for range 512 << 10 / 64 {
			fmt.Fprintf(os.Stderr, "\n%062d\r", 0)
		}
		fmt.Fprintln(os.Stderr, "\nthe end")
		childEcho()
	},
	"env":  func() { childPrint(os.Environ()); childEcho() },
	"args": func() { childPrint(os.Args[1:]); childEcho() },
	"tree": func() { // a child whose own child has a child; none of them listens
		self := childCommand("leaf")
		self.Stdout = os.Stdout
		if err := self.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		childEcho()
	},
	"leaf": func() {
		self := childCommand("deaf")
		self.Stdout = os.Stdout
		if err := self.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		childPrint([]int{os.Getpid(), self.Process.Pid})
		childWait()
	},
	"orphans": func() { // fails, and leaves a child that holds its pipes
		self := childCommand("deaf")
		self.Stdout, self.Stderr = os.Stdout, os.Stderr
		self.Start()
		os.Exit(7)
	},
	"copy": func() { // what a handler might run: reads and prints
		n, err := io.Copy(io.Discard, os.Stdin)
		fmt.Printf("child read %d %v\n", n, err)
	},
	"stray": func() {
		serveStray(func() {
			fmt.Println("stray println")
			os.Stdout.WriteString("stray write\n")
			slog.New(slog.NewTextHandler(os.Stdout, nil)).Info("stray log")
			self := childCommand("copy")
			self.Stdin, self.Stdout = os.Stdin, os.Stdout
			if err := self.Run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			n, err := os.Stdin.Read(make([]byte, 1))
			fmt.Println("stray read", n, err)
		})
	},
}

// addMode adds a child mode of one platform. It runs before the init above.
func addMode(name string, run func()) bool {
	childModes[name] = run
	return true
}

// serveStray answers lines over Stdio, and runs stray before each answer.
func serveStray(stray func()) {
	ctx := context.Background()
	conn, err := Stdio().Connect(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := Stdio().Connect(ctx); err == nil {
		fmt.Fprintln(os.Stderr, "connected twice")
	}
	for {
		frame, err := conn.Read(ctx)
		if err != nil {
			break
		}
		stray()
		conn.Write(ctx, frame)
	}
	conn.Close()
	fmt.Println("stdout is back")
	conn, err = Stdio().Connect(ctx) // and can be taken again
	if err == nil {
		conn.Write(ctx, []byte("taken again"))
		err = conn.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func childEcho() {
	r := bufio.NewReader(os.Stdin)
	for {
		line, err := r.ReadBytes('\n')
		os.Stdout.Write(line)
		if err != nil {
			return
		}
	}
}

// childWait outlasts its test, but not for long if that fails to end it.
func childWait() { time.Sleep(3 * time.Minute) }

func childPrint(v any) {
	text, _ := json.Marshal(v)
	os.Stdout.Write(append(text, '\n'))
}

// childCommand runs this binary in a child mode.
func childCommand(mode string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{childMode + "=" + mode}
	if raceEnabled {
		cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0") // else every child lingers
	}
	return cmd
}

// A lineLog collects what a child writes to standard error.
type lineLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *lineLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// startChild connects to a child and closes it when the test ends. Then
// nothing may be left of it.
func startChild(t *testing.T, c *Command) *child {
	t.Helper()
	leakCheck(t)
	conn, err := c.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*child)
}

// readLineFrom reads one frame and fails the test if there is none in time.
func readLineFrom(t *testing.T, c Conn) string {
	t.Helper()
	frame, err := readInTime(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return string(frame)
}

func readInTime(t *testing.T, c Conn) (frame []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		frame, err = c.Read(context.Background())
		close(done)
	}()
	if !within(done, testPatience) {
		t.Fatal("Read does not return")
	}
	return frame, err
}

// helloChild shows that an echoing child is up.
func helloChild(t *testing.T, c Conn) {
	t.Helper()
	if err := c.Write(t.Context(), []byte(`"hello"`)); err != nil {
		t.Fatal(err)
	}
	if got := readLineFrom(t, c); got != `"hello"` {
		t.Fatalf("got %q back", got)
	}
}

func closeInTime(t *testing.T, c Conn, d time.Duration) error {
	t.Helper()
	begin := time.Now()
	err := c.Close()
	if took := time.Since(begin); took > d {
		t.Errorf("Close took %v", took)
	}
	return err
}

func TestStreamLines(t *testing.T) {
	shows(t, "stdio.framing", "transport.custom.reuse-stdio")
	huge := strings.Repeat("h", 5<<20)
	largest := strings.Repeat("l", 16<<20)
	for _, c := range []struct {
		name, input string
		max         int
		want        []string
	}{
		{"nothing", "", 0, nil},
		{"one", "{}\n", 0, []string{"{}"}},
		{"packed", "1\n2\n3\n", 0, []string{"1", "2", "3"}},
		{"no newline at the end", "1\n2", 0, []string{"1", "2"}},
		{"carriage returns", "1\r\n2\r\r\n", 0, []string{"1", "2\r"}},
		{"blank lines", "\n\r\n  \n\t \r\n1\n\n \n2\n\n", 0, []string{"1", "2"}},
		{"blank end", "1\n  ", 0, []string{"1"}},
		{"not line ends", "a\u2028b\u0085c\fd\x1ce\rf\n", 0, []string{"a\u2028b\u0085c\fd\x1ce\rf"}},
		{"byte order mark", "\uFEFF{}\n", 0, []string{"{}"}},
		{"around the buffer", strings.Repeat("a", readBuffer-1) + "\n" + strings.Repeat("b", readBuffer) + "\n" + strings.Repeat("c", readBuffer+1) + "\n", 0,
			[]string{strings.Repeat("a", readBuffer-1), strings.Repeat("b", readBuffer), strings.Repeat("c", readBuffer+1)}},
		{"huge", huge + "\r\n1\n", 0, []string{huge, "1"}},
		{"text of 16 MiB", `{"text":"` + largest + "\"}\n1\n", 0, []string{`{"text":"` + largest + `"}`, "1"}},
		{"over the default limit", largest + huge + "\n1\n", 0, []string{"!-32600", "1"}},
		{"blank and huge", strings.Repeat(" ", 3*readBuffer) + "\n1\n", 0, []string{"1"}},
		{"at the limit", "12345678\n12345678\r\n12345678", 8, []string{"12345678", "12345678", "12345678"}},
		{"over the limit", "123456789\n1\n123456789\r\n2\n1234567890123456\n3\n123456789", 8,
			[]string{"!-32600", "1", "!-32600", "2", "!-32600", "3", "!-32600"}},
		{"huge over the limit", huge + "\n1\n" + huge, 1 << 20, []string{"!-32600", "1", "!-32600"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, _ := streamOver(t, strings.NewReader(c.input), c.max)
			if got := readFrames(t, conn); !slices.Equal(got, c.want) {
				t.Errorf("got %.200q", got)
			}
			if len(c.input) > 1<<20 {
				return
			}
			conn, _ = streamOver(t, iotest.OneByteReader(strings.NewReader(c.input)), c.max)
			if got := readFrames(t, conn); !slices.Equal(got, c.want) {
				t.Errorf("byte by byte got %.200q", got)
			}
			conn, _ = streamOver(t, iotest.DataErrReader(strings.NewReader(c.input)), c.max)
			if got := readFrames(t, conn); !slices.Equal(got, c.want) {
				t.Errorf("with the end in the last piece got %.200q", got)
			}
		})
	}
}

// endlessReader reads as left bytes of x, and a last piece.
type endlessReader struct {
	left, given int
	end         string
}

func (e *endlessReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		n := copy(p, e.end)
		e.end = e.end[n:]
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	e.given += n
	return n, nil
}

// A line without end is refused as soon as it is too long and never held.
func TestStreamEndlessLine(t *testing.T) {
	input := &endlessReader{left: 256 << 20, end: "\n1\n"}
	conn, _ := streamOver(t, input, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := conn.Read(t.Context())
	var bad *Error
	if !errors.As(err, &bad) || bad.Code != CodeInvalidRequest || !strings.Contains(bad.Message, "1048576") {
		t.Fatalf("got %v", err)
	}
	if input.given > 2<<20 {
		t.Errorf("refused only after %d bytes", input.given)
	}
	if got := readFrames(t, conn); !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %q after it", got)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("allocated %d bytes for it", used)
	}
}

// Frames belong to the reader: later ones do not overwrite them.
func TestStreamFramesAreOwned(t *testing.T) {
	conn, _ := streamOver(t, strings.NewReader("first\nsecond\nthird\n"), 0)
	first, _ := conn.Read(t.Context())
	second, _ := conn.Read(t.Context())
	copy(first[:cap(first)], "XXXXXXXXXX")
	if third, _ := conn.Read(t.Context()); string(second) != "second" || string(third) != "third" {
		t.Errorf("got %q, %q", second, third)
	}
}

func TestStreamAllocations(t *testing.T) {
	line := strings.Repeat("y", 150) + "\n"
	conn, _ := streamOver(t, strings.NewReader(strings.Repeat(line, 2000)), 0)
	if n := testing.AllocsPerRun(1000, func() { conn.Read(t.Context()) }); n > 1 {
		t.Errorf("%v allocations to read a line", n)
	}
	conn, err := (&Stream{Reader: strings.NewReader(""), Writer: io.Discard}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 150, 151)
	if n := testing.AllocsPerRun(1000, func() { conn.Write(t.Context(), frame) }); n > 0 {
		t.Errorf("%v allocations to write a frame with room for its end", n)
	}
}

// writeLog records each Write.
type writeLog struct{ writes []string }

func (p *writeLog) Write(b []byte) (int, error) {
	p.writes = append(p.writes, string(b))
	return len(b), nil
}

// Frames do not mix, however many write: each is one Write.
func TestStreamConcurrentWriters(t *testing.T) {
	shows(t, "stdio.framing")
	out := new(writeLog)
	conn, err := (&Stream{Reader: strings.NewReader(""), Writer: out}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 50, 4
	var wg sync.WaitGroup
	for i := range writers {
		frame := bytes.Repeat([]byte{byte('A' + i)}, 200<<10)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				if err := conn.Write(t.Context(), bytes.Clone(frame)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if len(out.writes) != writers*each {
		t.Fatalf("%d writes", len(out.writes))
	}
	for _, w := range out.writes {
		if w != strings.Repeat(w[:1], 200<<10)+"\n" {
			t.Fatalf("frames mixed: %.20q", w)
		}
	}
}

// After part of a frame was lost nothing can follow it.
func TestStreamBrokenWriter(t *testing.T) {
	writes := 0
	conn, err := (&Stream{Reader: strings.NewReader(""), Writer: writerFunc(func(p []byte) (int, error) {
		writes++
		return len(p) / 2, nil
	})}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := conn.Write(t.Context(), []byte("{}")); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("got %v", err)
		}
	}
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A socket pair: closing unblocks both directions and the peer sees the end.
func TestStreamClose(t *testing.T) {
	shows(t, "transport.custom.reuse-stdio", "transport.custom.allowed")
	leakCheck(t)
	near, far := net.Pipe()
	a, err := (&Stream{Reader: near, Writer: near}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := (&Stream{Reader: far, Writer: far}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 2)
	go func() { _, err := a.Read(context.Background()); got <- err }()
	go func() { got <- a.Write(context.Background(), []byte("nobody reads")) }()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-got; err != ErrClosed {
			t.Errorf("got %v", err)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Write(t.Context(), []byte("{}")); err != ErrClosed {
		t.Errorf("got %v", err)
	}
	for { // what was written before the end may still come
		if _, err = readInTime(t, b); err != nil {
			break
		}
	}
	if err != io.EOF {
		t.Errorf("the peer got %v", err)
	}
	b.Close()
}

// Close does not wait for a Read that nothing can unblock.
func TestStreamCloseWhileReading(t *testing.T) {
	leakCheck(t)
	r, w := io.Pipe()
	conn, _ := streamOver(t, struct{ io.Reader }{r}, 0)
	reading := make(chan error, 1)
	go func() { _, err := conn.Read(context.Background()); reading <- err }()
	if err := closeInTime(t, conn, testPatience); err != nil {
		t.Error(err)
	}
	w.Close()
	if err := <-reading; err != ErrClosed {
		t.Errorf("got %v", err)
	}
}

func TestStreamConnect(t *testing.T) {
	ctx := t.Context()
	if _, err := (&Stream{Writer: io.Discard}).Connect(ctx); err == nil {
		t.Error("connected without a Reader")
	}
	s := &Stream{Reader: strings.NewReader(""), Writer: io.Discard}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Connect(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Connect(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.Connect(ctx); err == nil {
		t.Error("connected twice")
	}
}

func TestCommandLines(t *testing.T) {
	shows(t, "transport.stdio.client-support", "stdio.framing")
	ch := startChild(t, &Command{Cmd: childCommand("echo")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // bounds nothing
	const writers = 20
	for i := range writers {
		frame := bytes.Repeat([]byte{byte('a' + i)}, 10<<(i%5*4)) // up to 640 KiB
		go ch.Write(ctx, frame)
	}
	seen := map[byte]bool{}
	for range writers {
		line := readLineFrom(t, ch)
		if strings.Trim(line, line[:1]) != "" || seen[line[0]] {
			t.Fatalf("frames mixed: %.20q", line)
		}
		seen[line[0]] = true
	}
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if _, err := readInTime(t, ch); err != ErrClosed {
		t.Errorf("Read after Close: %v", err)
	}
	if err := ch.Write(t.Context(), []byte("{}")); err != ErrClosed {
		t.Errorf("Write after Close: %v", err)
	}
	if err := ch.Close(); err != nil {
		t.Error(err)
	}
}

// The context of Connect bounds the start and nothing later, and a Command
// can be started again.
func TestCommandConnect(t *testing.T) {
	c := &Command{Cmd: childCommand("echo")}
	ctx, cancel := context.WithCancel(t.Context())
	first, err := c.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cancel()
	helloChild(t, first)
	if _, err := c.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	second := startChild(t, c)
	helloChild(t, second)
	if first.(*child).cmd.Process.Pid == second.cmd.Process.Pid {
		t.Error("one process serves both")
	}
	first.Close()
	helloChild(t, second)
}

func TestCommandCannotStart(t *testing.T) {
	leakCheck(t)
	piped := childCommand("echo")
	piped.Stdout = os.Stderr
	for _, c := range []struct {
		name string
		cmd  *exec.Cmd
		want error
	}{
		{"no such program", exec.Command("no-such-mcp-server"), exec.ErrNotFound},
		{"no such file", &exec.Cmd{Path: piped.Path + ".absent"}, fs.ErrNotExist},
		{"output taken", piped, nil},
		{"no command", nil, nil},
	} {
		_, err := (&Command{Cmd: c.cmd}).Connect(t.Context())
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// A server that fails in the middle of a call: what it said still counts,
// and everything after that says how it ended.
func TestCommandFails(t *testing.T) {
	shows(t, "stdio.shutdown.server-initiated")
	ch := startChild(t, &Command{Cmd: childCommand("boom")})
	if err := ch.Write(t.Context(), []byte("call")); err != nil {
		t.Fatal(err)
	}
	if got := readLineFrom(t, ch); got != "last words" {
		t.Errorf("got %q", got)
	}
	_, err := readInTime(t, ch)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{"exit status 3", "boom", ch.name} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not mention %s", err, part)
		}
	}
	if again := ch.Write(t.Context(), []byte("call")); again == nil || again.Error() != err.Error() {
		t.Errorf("Write after the end: %v", again)
	}
	if again := closeInTime(t, ch, testPatience); again == nil || again.Error() != err.Error() {
		t.Errorf("Close after the end: %v", again)
	}
}

// A server that exits at once without a failure ended the conversation.
func TestCommandExits(t *testing.T) {
	shows(t, "stdio.shutdown.server-initiated")
	ch := startChild(t, &Command{Cmd: childCommand("exit 0")})
	_, err := readInTime(t, ch)
	if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "usage: server FILE") {
		t.Errorf("got %v", err)
	}
	waitUntil(t, "the child is reaped", func() bool { return isClosed(ch.exited) })
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
}

// A child that a failed server left behind neither holds up the news nor
// lives on.
func TestCommandFailsWithOrphans(t *testing.T) {
	ch := startChild(t, &Command{Cmd: childCommand("orphans")})
	_, err := readInTime(t, ch)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v", err)
	}
	waitUntil(t, "the group is gone", func() bool { return isClosed(ch.swept) })
}

func TestCommandStderr(t *testing.T) {
	shows(t, "stdio.stderr.allowed", "stdio.stderr.no-error")
	var lines lineLog
	var raw bytes.Buffer
	cmd := childCommand("noisy")
	cmd.Stderr = &raw
	ch := startChild(t, &Command{Cmd: cmd, Stderr: lines.add})
	helloChild(t, ch)
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	all := lines.all()
	if n := len(strings.Join(all, "")); n < 512<<10+62*(512<<10/64) {
		t.Errorf("%d bytes in lines", n)
	}
	if len(all) < 32+512<<10/64 || all[len(all)-1] != "the end" || strings.ContainsAny(strings.Join(all, ""), "\r\n") {
		t.Errorf("%d lines, the last is %q", len(all), all[len(all)-1])
	}
	if raw.Len() < 1<<20 {
		t.Errorf("%d raw bytes", raw.Len())
	}
	if n := len(ch.tail); n > stderrTail {
		t.Errorf("%d bytes kept", n)
	}
}

func TestCommandLogger(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	ch := startChild(t, &Command{Cmd: childCommand("exit 0"), Logger: log})
	readInTime(t, ch)
	ch.Close()
	if !strings.Contains(text.String(), `line="usage: server FILE"`) {
		t.Errorf("logged %q", text.String())
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Setenv("MCP_TEST_SECRET", "secret")
	safe, function := safeVariables[0], safeVariables[1]
	t.Setenv(safe, "kept")
	t.Setenv(function, "() { :; }")
	cmd := childCommand("env")
	cmd.Env = append(cmd.Env, "MCP_TEST_OWN=() is mine", "PATH=mine")
	given := slices.Clone(cmd.Env)
	ch := startChild(t, &Command{Cmd: cmd})
	var env []string
	if err := json.Unmarshal([]byte(readLineFrom(t, ch)), &env); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{safe + "=kept", "MCP_TEST_OWN=() is mine", "PATH=mine"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if strings.Contains(entry, "SECRET") || name == function {
			t.Errorf("%s was passed on", entry)
		}
		if !slices.Contains(safeVariables, name) && !slices.Contains(given, entry) && value != "" && runtime.GOOS != "windows" {
			t.Errorf("%s is not among the safe ones", entry)
		}
	}
	if cmd.SysProcAttr != nil || cmd.Process != nil || !slices.Equal(cmd.Env, given) {
		t.Error("the caller's command changed")
	}
}

// With Env nil the child still gets no more than the safe variables.
func TestCommandEnvironmentDefault(t *testing.T) {
	t.Setenv("MCP_TEST_SECRET", "secret")
	cmd := childCommand("env")
	cmd.Env = nil
	built, err := (&Command{Cmd: cmd}).copyCmd()
	if err != nil {
		t.Fatal(err)
	}
	if built.Env == nil || strings.Contains(strings.Join(built.Env, "\n"), "SECRET") {
		t.Errorf("got %q", built.Env)
	}
	for _, name := range safeVariables { // none of them set: still not everything
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	if built, err = (&Command{Cmd: cmd}).copyCmd(); err != nil || built.Env == nil {
		t.Errorf("got %q, %v", built.Env, err)
	}
}

// A server that ends at end of file in its own time is let.
func TestCommandCloseGentle(t *testing.T) {
	shows(t, "stdio.shutdown.order", "stdio.shutdown.order-modern")
	var lines lineLog
	ch := startChild(t, &Command{Cmd: childCommand("late"), Grace: testPatience, Stderr: lines.add})
	helloChild(t, ch)
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if got := lines.all(); !slices.Equal(got, []string{"left by itself"}) || !ch.cmd.ProcessState.Success() {
		t.Errorf("got %q and %v", got, ch.cmd.ProcessState)
	}
}

// A server that ignores the end of its input is ended.
func TestCommandCloseForced(t *testing.T) {
	shows(t, "stdio.shutdown.order-modern")
	const grace = 200 * time.Millisecond
	var lines lineLog
	ch := startChild(t, &Command{Cmd: childCommand("ignores eof"), Grace: grace, Stderr: lines.add})
	helloChild(t, ch)
	begin := time.Now()
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < grace {
		t.Errorf("ended after %v", took)
	}
	if got := lines.all(); !slices.Equal(got, []string{"eof"}) || ch.cmd.ProcessState.Success() {
		t.Errorf("got %q and %v", got, ch.cmd.ProcessState)
	}
}

// Closing unblocks a Write to a child that reads nothing, and a Read.
func TestCommandCloseUnblocks(t *testing.T) {
	ch := startChild(t, &Command{Cmd: childCommand("deaf"), Grace: 100 * time.Millisecond})
	got := make(chan error, 2)
	go func() { got <- ch.Write(context.Background(), make([]byte, 8<<20)) }()
	go func() { _, err := ch.Read(context.Background()); got <- err }()
	var wg sync.WaitGroup
	for range 3 { // at the same time
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := closeInTime(t, ch, testPatience); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	for range 2 {
		select {
		case err := <-got:
			if err != ErrClosed {
				t.Errorf("got %v", err)
			}
		case <-time.After(testPatience):
			t.Fatal("still blocked")
		}
	}
}

// What the child started, and what that started, ends with the child.
func TestCommandTree(t *testing.T) {
	ch := startChild(t, &Command{Cmd: childCommand("tree"), Grace: 500 * time.Millisecond})
	var pids []int
	if err := json.Unmarshal([]byte(readLineFrom(t, ch)), &pids); err != nil {
		t.Fatal(err)
	}
	pids = append(pids, ch.cmd.Process.Pid)
	gone := make([]func() bool, len(pids))
	for i, pid := range pids {
		gone[i] = watchProcess(t, pid)
		if gone[i]() {
			t.Fatalf("process %d is not there to begin with", pid)
		}
	}
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	for i, pid := range pids {
		waitUntil(t, fmt.Sprintf("process %d is gone", pid), gone[i])
	}
}

// What a server prints by accident does not reach the protocol, and what is
// in its standard input stays there.
func TestStdioStrayOutput(t *testing.T) {
	shows(t, "stdio.stdout.clean", "stdio.framing")
	checkStray(t, "stray", "stray println", "stray write", "stray log", "child read 0 <nil>", "stray read 0 EOF")
}

// checkStray runs a child that prints on the side. wants are what must be
// found in standard error for each of two messages.
func checkStray(t *testing.T, mode string, wants ...string) {
	t.Helper()
	var lines lineLog
	ch := startChild(t, &Command{Cmd: childCommand(mode), Stderr: lines.add, Grace: testPatience})
	for _, frame := range []string{`{"n":1}`, `{"n":2}`} { // both at once: the second must not be stolen
		if err := ch.Write(t.Context(), []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`{"n":1}`, `{"n":2}`} {
		if got := readLineFrom(t, ch); got != want {
			t.Errorf("got %q", got)
		}
	}
	ch.stdin.Close()
	for _, want := range []string{"stdout is back", "taken again"} {
		if got := readLineFrom(t, ch); got != want {
			t.Errorf("got %q after Close", got)
		}
	}
	ch.Close()
	all := strings.Join(lines.all(), "\n")
	for _, want := range wants {
		if strings.Count(all, want) != 2 {
			t.Errorf("standard error has not %q twice:\n%s", want, all)
		}
	}
	if strings.Contains(all, "connected twice") {
		t.Error("standard output was given away twice")
	}
}

func BenchmarkStreamRead(b *testing.B) {
	for _, size := range []int{150, 64 << 10, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			conn, err := (&Stream{Reader: r, Writer: w}).Connect(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			frame := append(make([]byte, 0, size+1), bytes.Repeat([]byte{'x'}, size)...)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			go func() {
				for conn.Write(b.Context(), frame) == nil {
				}
			}()
			for b.Loop() {
				if _, err := conn.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			conn.Close()
		})
	}
}
