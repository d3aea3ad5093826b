package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// This file is the stdio transport: one message a line over any pair of
// streams, this process as a server, and a child process as a server.

const (
	defaultMaxLine = 16<<20 + 64<<10 // 16 MiB of text and what is around it
	readBuffer     = 64 << 10        // what a pipe holds on Linux
	defaultGrace   = 2 * time.Second
	// afterExit is how long output may keep coming once a process is gone:
	// others may hold the far ends of its pipes.
	afterExit = 500 * time.Millisecond
	// closeLimit bounds the wait for streams whose Close waits.
	closeLimit = time.Second
	// killLimit bounds the wait for a process that has got SIGKILL.
	killLimit = 5 * time.Second
)

// A Stream is a transport over a pair of byte streams, one message a line
// (2026-07-28 basic/transports/stdio): a socket, two pipes, anything reliable
// that keeps the order. Lines end with a newline; a carriage return before it
// is dropped, and blank lines are skipped. Cancellation is a notification.
//
// A Stream connects once; closing the connection closes Reader and Writer if
// they are io.Closers, which is what unblocks a pending Read or Write.
type Stream struct {
	// Reader is where messages come from.
	Reader io.Reader
	// Writer is where messages go. It gets whole messages, one a Write unless
	// several are ready.
	Writer io.Writer
	// MaxLine is the length in bytes of the longest line that is accepted,
	// its end not counted; 0 means 16 MiB and 64 KiB, so that 16 MiB of text
	// fit into a message. A longer line is refused with [CodeInvalidRequest]
	// and passed over without being held in memory.
	MaxLine int

	process   bool // stdin and stdout of this process
	connected atomic.Bool
}

// Stdio returns the transport of a server that was started as a child: it
// speaks over the standard input and output of this process.
//
// While it is connected these two belong to the protocol alone. What handlers
// and libraries print to standard output goes to standard error, and who
// reads standard input finds it empty. On Unix this holds for the descriptors
// 0 and 1 and therefore for child processes and C code as well. On Windows it
// holds for the variables os.Stdin and os.Stdout and for the standard handles
// of the process, which children get; a C runtime in the process keeps its
// own copies. On Plan 9, Solaris and WebAssembly it holds for the two
// variables only. Where it is the variables that count, what was os.Stdout
// before must not be kept and used. All is restored when the connection closes.
//
// A Read that waits for input when the connection closes may stay behind
// until the input ends or its next piece comes, which it takes; it holds
// nothing up. One connection can exist at a time.
func Stdio() *Stream { return &Stream{process: true} }

// Connect returns the connection. It does not wait.
func (s *Stream) Connect(ctx context.Context) (Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.process {
		return connectStdio(s.MaxLine)
	}
	if s.Reader == nil || s.Writer == nil {
		return nil, errors.New("mcp: a Stream needs a Reader and a Writer")
	}
	if s.connected.Swap(true) {
		return nil, errors.New("mcp: a Stream connects once")
	}
	return newStreamConn(s.Reader, s.Writer, s.MaxLine, func() error {
		err := closeStream(s.Writer)
		closeStream(s.Reader) // often the same; what was written is what matters
		return err
	}), nil
}

func closeStream(stream any) error {
	if c, ok := stream.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

var stdioTaken atomic.Bool

func connectStdio(maxLine int) (Conn, error) {
	if stdioTaken.Swap(true) {
		return nil, errors.New("mcp: standard input and output are in use by another connection")
	}
	in, out, restore, err := takeStdio()
	if err != nil {
		stdioTaken.Store(false)
		return nil, fmt.Errorf("mcp: standard input and output: %w", err)
	}
	return newStreamConn(in, out, maxLine, func() error {
		restore()
		stdioTaken.Store(false)
		return nil
	}), nil
}

// swapStdio points os.Stdin at null and os.Stdout at standard error.
func swapStdio(null *os.File) (restore func()) {
	in, out := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = null, os.Stderr
	return func() { os.Stdin, os.Stdout = in, out }
}

// A streamConn frames messages by newlines.
type streamConn struct {
	lines  lineReader
	closed atomic.Bool
	close  func() error // works once

	mu     sync.Mutex // held while writing
	w      io.Writer
	broken error // why nothing can be written any more
}

func newStreamConn(r io.Reader, w io.Writer, maxLine int, closer func() error) *streamConn {
	if maxLine <= 0 {
		maxLine = defaultMaxLine
	}
	c := &streamConn{w: w, lines: lineReader{r: bufio.NewReaderSize(r, readBuffer), max: maxLine}}
	c.close = sync.OnceValue(func() error {
		c.closed.Store(true)
		done := make(chan struct{})
		var err error
		go func() {
			err = closer()
			close(done)
		}()
		if !within(done, closeLimit) { // a Close that waits for a blocked Read
			return nil
		}
		return err
	})
	return c
}

func (c *streamConn) Read(context.Context) ([]byte, error) {
	frame, err := c.lines.next()
	if err != nil && c.closed.Load() {
		return nil, ErrClosed
	}
	return frame, err
}

func (c *streamConn) Write(_ context.Context, frame []byte) error {
	return c.writeLines(append(frame, '\n'))
}

// writeLines writes frames, each with its newline.
func (c *streamConn) writeLines(lines []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return ErrClosed
	}
	if c.broken == nil {
		n, err := c.w.Write(lines)
		if err == nil && n < len(lines) {
			err = io.ErrShortWrite
		}
		// What follows half a frame would be read as part of its line.
		c.broken = err
	}
	if c.broken != nil && c.closed.Load() {
		return ErrClosed
	}
	return c.broken
}

// more reports whether there is a whole line that can be read without
// waiting. It is asked by the one who reads.
func (c *streamConn) more() bool {
	buffered, _ := c.lines.r.Peek(c.lines.r.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

func (c *streamConn) Close() error { return c.close() }

// A lineReader splits a stream into lines. Only 0x0A ends one: the other
// characters that some call line ends may stand in JSON strings.
type lineReader struct {
	r        *bufio.Reader
	max      int
	skipping bool // up to the next newline all belongs to a line that was too long
}

// A byteOrderMark may begin what some write (RFC 8259 section 8.1 lets a
// reader pass over it).
var byteOrderMark = []byte("\xef\xbb\xbf")

// next returns the next line that is not blank, in memory of its own. A line
// that is too long is an *Error as soon as that is known. A last line needs no
// newline.
func (l *lineReader) next() ([]byte, error) {
	var line longLine
	defer line.free()
	for {
		chunk, err := l.r.ReadSlice('\n')
		more := err == bufio.ErrBufferFull
		if err != nil && !more && err != io.EOF {
			return nil, err
		}
		switch {
		case l.skipping:
			l.skipping = more
		case line.len+len(chunk)-len("\r\n") > l.max:
			l.skipping = more
			return nil, l.tooLong()
		case more:
			line.add(chunk)
		default:
			frame := bytes.TrimPrefix(bytes.TrimSuffix(bytes.TrimSuffix(line.join(chunk), []byte("\n")), []byte("\r")), byteOrderMark)
			if len(frame) > l.max {
				return nil, l.tooLong()
			}
			if len(bytes.Trim(frame, " \t\r")) > 0 {
				return frame, nil
			}
			line.free()
		}
		if err == io.EOF {
			return nil, err
		}
	}
}

func (l *lineReader) tooLong() *Error {
	return Errorf(CodeInvalidRequest, "a message must not be longer than %d bytes", l.max)
}

// A longLine holds a line that is longer than the reader's buffer, until all of
// it is there, in blocks that all readers share: it is copied once, when its
// length is known, and memory grows with what came, not with what may come.
type longLine struct {
	blocks []*lineBlock
	len    int
}

type lineBlock [256 << 10]byte

var lineBlocks = sync.Pool{New: func() any { return new(lineBlock) }}

func (l *longLine) add(chunk []byte) {
	for len(chunk) > 0 {
		at := l.len % len(lineBlock{})
		if at == 0 {
			l.blocks = append(l.blocks, lineBlocks.Get().(*lineBlock))
		}
		n := copy(l.blocks[len(l.blocks)-1][at:], chunk)
		l.len, chunk = l.len+n, chunk[n:]
	}
}

// join returns what was added and the end of the line, in memory of its own.
func (l *longLine) join(end []byte) []byte {
	line := make([]byte, 0, l.len+len(end))
	for _, block := range l.blocks {
		line = append(line, block[:min(len(block), l.len-len(line))]...)
	}
	return append(line, end...)
}

func (l *longLine) free() {
	for _, block := range l.blocks {
		lineBlocks.Put(block)
	}
	*l = longLine{}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// within reports whether done is closed before d is over.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// A Command is a transport to a server that it runs as a child process, with
// one message a line on the child's standard input and output.
//
// Every Connect starts the program anew. The child leads a process group of
// its own on Unix and is in a Job Object of its own on Windows, so that the
// processes that it starts end with it; elsewhere only the child itself is
// ended. The child is the server: when it exits, the connection is over, and
// processes that it left behind are ended. Read then returns an error with the
// exit status, which is an [*exec.ExitError] too, and with the end of what the
// child wrote to standard error; after exit status 0 the error is an [io.EOF].
//
// Close closes the child's standard input and waits for it to exit, for Grace
// at most; then it sends SIGTERM to the group and waits for Grace again; then
// it sends SIGKILL (2025-11-25 basic/lifecycle § Shutdown). Windows has no
// SIGTERM: there the job is terminated after the first wait. Close returns
// nil, unless the child had failed before, or is still there.
type Command struct {
	// Cmd says what to run; see [exec.Command]. It is copied, never started
	// itself. A context that it was made with and its Cancel, Stdin, Stdout
	// and WaitDelay have no say; Stdin and Stdout must be nil.
	//
	// Env holds variables on top of a few that are harmless: HOME, LOGNAME,
	// PATH, SHELL, TERM, USER on Unix; APPDATA, HOMEDRIVE, HOMEPATH,
	// LOCALAPPDATA, PATH, PATHEXT, PROCESSOR_ARCHITECTURE, SYSTEMDRIVE,
	// SYSTEMROOT, TEMP, USERNAME, USERPROFILE on Windows; without those whose
	// value starts with "()", a shell function. Secrets in the environment of
	// this process stay here. To pass all of it on, set Env to os.Environ().
	//
	// What the child writes to standard error is copied to Cmd.Stderr, if set.
	//
	// On Windows the child gets no console window. A batch file (.bat, .cmd)
	// is not started with arguments that its interpreter would change: those
	// with a quotation mark, a percent sign or a line break.
	Cmd *exec.Cmd
	// MaxLine is the longest line accepted from the child, in bytes, with the
	// default of [Stream].
	MaxLine int
	// Grace is how long each step of closing waits; 0 means 2 seconds.
	Grace time.Duration
	// Stderr, if set, is called with each line that the child writes to
	// standard error, by one goroutine. Lines of more than 16 KiB come in
	// pieces. Nothing is read from standard error until it returns.
	Stderr func(line string)
	// Logger, if set, gets these lines at level Info when Stderr is nil.
	Logger *slog.Logger
}

// Connect starts the child. ctx bounds the start only: it does not end the
// child later.
func (c *Command) Connect(ctx context.Context) (Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := c.copyCmd()
	if err != nil {
		return nil, err
	}
	stdin, stdout, stderr, err := startPiped(cmd)
	if err != nil {
		return nil, fmt.Errorf("mcp: start the server: %w", err)
	}
	ch := &child{
		name:  filepath.Base(cmd.Path),
		cmd:   cmd,
		group: processGroup{process: cmd.Process},
		stdin: stdin, stdout: stdout, stderr: stderr,
		grace:  c.Grace,
		exited: make(chan struct{}), swept: make(chan struct{}), drained: make(chan struct{}),
	}
	if ch.grace <= 0 {
		ch.grace = defaultGrace
	}
	if err := ch.group.adopt(); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		closeFiles(stdin, stdout, stderr)
		return nil, fmt.Errorf("mcp: start the server: %w", err)
	}
	ch.streamConn = newStreamConn(childOutput{ch}, stdin, c.MaxLine, nil)
	ch.close = sync.OnceValue(ch.shutdown)
	go ch.await()
	go ch.drainStderr(c.stderrSink(cmd.Process.Pid))
	return ch, nil
}

// copyCmd returns what Cmd says, ready to be started.
func (c *Command) copyCmd() (*exec.Cmd, error) {
	if c.Cmd == nil {
		return nil, errors.New("mcp: Command.Cmd is nil")
	}
	if c.Cmd.Err != nil {
		return nil, fmt.Errorf("mcp: start the server: %w", c.Cmd.Err)
	}
	if c.Cmd.Stdin != nil || c.Cmd.Stdout != nil {
		return nil, errors.New("mcp: Stdin and Stdout of Command.Cmd must be nil: they carry the protocol")
	}
	cmd := &exec.Cmd{
		Path:       c.Cmd.Path,
		Args:       c.Cmd.Args,
		Dir:        c.Cmd.Dir,
		ExtraFiles: c.Cmd.ExtraFiles,
		Env:        append(safeEnvironment(), c.Cmd.Env...),
	}
	if err := prepare(cmd, c.Cmd.SysProcAttr); err != nil {
		return nil, fmt.Errorf("mcp: start the server: %w", err)
	}
	return cmd, nil
}

// safeEnvironment returns the variables that every child gets.
func safeEnvironment() []string {
	env := []string{} // not nil, which would stand for the whole environment
	for _, name := range safeVariables {
		if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// startPiped starts cmd and returns our ends of its pipes. They are files
// rather than what [exec.Cmd] makes of writers, so that Wait waits for the
// process and for nothing else.
func startPiped(cmd *exec.Cmd) (stdin, stdout, stderr *os.File, err error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		closeFiles(inR, inW)
		return nil, nil, nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		closeFiles(inR, inW, outR, outW)
		return nil, nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	err = cmd.Start()
	closeFiles(inR, outW, errW)
	if err != nil {
		closeFiles(inW, outR, errR)
		return nil, nil, nil, err
	}
	return inW, outR, errR, nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// stderrSink returns what takes the child's standard error piece by piece: up
// to a newline, or as much as there is room for.
func (c *Command) stderrSink(pid int) func(piece []byte) {
	deliver := c.Stderr
	if log := c.Logger; deliver == nil && log != nil {
		deliver = func(line string) { log.Info("server stderr", "pid", pid, "line", line) }
	}
	raw := c.Cmd.Stderr
	return func(piece []byte) {
		if raw != nil {
			raw.Write(piece)
		}
		if deliver != nil {
			deliver(string(bytes.TrimRight(piece, "\r\n")))
		}
	}
}

// A child is the connection to a child process. One goroutine waits for the
// process, another reads its standard error.
type child struct {
	*streamConn
	name                  string
	cmd                   *exec.Cmd
	group                 processGroup
	stdin, stdout, stderr *os.File
	grace                 time.Duration
	killed                atomic.Bool // the group had its SIGKILL

	waitErr error         // set when exited is closed
	exited  chan struct{} // closed when the process is reaped
	swept   chan struct{} // … and its group is gone
	drained chan struct{} // closed when standard error is at its end

	tailMu sync.Mutex
	tail   []byte // the end of standard error
}

// await reaps the process and ends what it leaves behind. That begins right
// after the process is reaped: the number of its group cannot be in use again
// yet, and is not as long as a member lives.
func (c *child) await() {
	c.waitErr = c.cmd.Wait()
	c.group.terminate()
	deadline := time.Now().Add(afterExit)
	c.stdout.SetReadDeadline(deadline) // where there are none, the job has just been ended
	c.stderr.SetReadDeadline(deadline)
	close(c.exited)

	end := time.Now().Add(c.grace)
	for pause := time.Millisecond; c.group.alive(); pause = min(2*pause, 20*time.Millisecond) {
		if c.killed.Load() || time.Now().After(end) {
			c.group.kill()
			break
		}
		time.Sleep(pause)
	}
	c.group.release()
	close(c.swept)
}

// childOutput reads the child's standard output. It ends a while after the
// process does, even if another process holds the pipe.
type childOutput struct{ c *child }

func (o childOutput) Read(p []byte) (int, error) {
	if isClosed(o.c.exited) { // what is in the pipe still counts, however late it is read
		o.c.stdout.SetReadDeadline(time.Now().Add(afterExit))
	}
	n, err := o.c.stdout.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

const stderrTail = 4 << 10

func (c *child) drainStderr(sink func([]byte)) {
	defer close(c.drained)
	r := bufio.NewReaderSize(c.stderr, 16<<10)
	for {
		piece, err := r.ReadSlice('\n')
		if len(piece) > 0 {
			c.tailMu.Lock()
			c.tail = append(c.tail, piece...)
			if over := len(c.tail) - stderrTail; over > 0 {
				c.tail = append(c.tail[:0], c.tail[over:]...)
			}
			c.tailMu.Unlock()
			sink(piece)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func (c *child) Read(ctx context.Context) ([]byte, error) {
	frame, err := c.streamConn.Read(ctx)
	var tooLong *Error
	if err == nil || errors.As(err, &tooLong) {
		return frame, err
	}
	return nil, c.explain(err)
}

func (c *child) Write(ctx context.Context, frame []byte) error {
	if err := c.streamConn.Write(ctx, frame); err != nil {
		return c.explain(err)
	}
	return nil
}

// explain returns the reason behind err, which came from one of the pipes. A
// child that exits closes its pipes a moment before.
func (c *child) explain(err error) error {
	if c.closed.Load() || !within(c.exited, afterExit) {
		return err
	}
	within(c.drained, afterExit)
	return c.exitError()
}

// exitError says how the process ended.
func (c *child) exitError() error {
	e := &exitError{name: c.name, status: c.cmd.ProcessState.String(), cause: c.waitErr}
	if c.waitErr == nil {
		e.cause = io.EOF
	}
	c.tailMu.Lock()
	e.stderr = strings.TrimSpace(strings.ToValidUTF8(string(c.tail), "\uFFFD"))
	c.tailMu.Unlock()
	return e
}

type exitError struct {
	name, status, stderr string
	cause                error
}

func (e *exitError) Error() string {
	text := fmt.Sprintf("mcp: server %s ended: %s", e.name, e.status)
	if e.stderr != "" {
		text += "; stderr: " + e.stderr
	}
	return text
}

func (e *exitError) Unwrap() error { return e.cause }

// shutdown is Close. Each wait is bounded: a process can be beyond SIGKILL.
func (c *child) shutdown() error {
	var err error
	if isClosed(c.exited) && c.waitErr != nil {
		err = c.exitError()
	}
	c.closed.Store(true)
	done := make(chan struct{})
	go func() { // may wait for a Write on Windows
		c.stdin.Close()
		close(done)
	}()
	if !within(c.exited, c.grace) {
		c.group.terminate()
		if !within(c.exited, c.grace) {
			c.killed.Store(true)
			c.group.kill()
		}
	}
	if !within(c.swept, c.grace+killLimit) {
		err = fmt.Errorf("mcp: server %s does not end: process %d", c.name, c.cmd.Process.Pid)
	}
	within(c.drained, afterExit)
	within(done, afterExit)
	go closeFiles(c.stdout, c.stderr)
	return err
}
