package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mcpkit/mcp"
)

// A junction is a run of bridge or trace: it stands between a client and a
// server and passes on what they send, unchanged.
type junction struct {
	name string // of the command
	target
	addr  string // where clients come by HTTP; "" means standard input and output
	full  bool
	file  string // for the trace
	trace *tracer

	in       io.Reader
	out, err io.Writer
}

// run parses the command line and joins the two sides until one of them ends.
func (j *junction) run(ctx context.Context, args []string) error {
	args, command := words(args)
	fs := flag.NewFlagSet(j.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints the error
	fs.StringVar(&j.addr, "http", "", "")
	j.target.flags(fs)
	if j.name == "trace" {
		fs.BoolVar(&j.full, "full", false, "")
		fs.StringVar(&j.file, "to", "", "")
	}
	operands, err := parseMixed(fs, args)
	if err == nil {
		operands, err = j.target.take(j.name, operands, command)
	}
	switch {
	case err != nil:
		return err
	case len(operands) > 0:
		return &usageError{fmt.Sprintf("%s: what is %q?", j.name, operands[0])}
	case j.name == "bridge" && (j.addr == "") != (j.url != ""):
		return &usageError{"bridge: it joins standard input to a URL, or --http ADDR to a command; trace takes any two"}
	}
	hide(j.err, j.secrets())
	if j.name == "trace" {
		w, closeFile, err := j.traceFile()
		if err != nil {
			return err
		}
		defer closeFile()
		j.trace = newTracer(w, j.full)
	}
	// The child is started in place of what the client would have started.
	j.env = append(os.Environ(), j.env...)
	err = j.join(ctx)
	if ctx.Err() != nil { // being told to stop is how it ends
		return nil
	}
	return err
}

// traceFile opens what the trace goes to: a file that only the user can read,
// to whose end it is added, or standard error.
func (j *junction) traceFile() (io.Writer, func() error, error) {
	if j.file == "" {
		return j.err, func() error { return nil }, nil
	}
	f, err := os.OpenFile(j.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	w := newOutput(f)
	hide(w, j.secrets())
	return w, f.Close, nil
}

func (j *junction) join(ctx context.Context) error {
	switch {
	case j.addr == "":
		return j.joinStdio(ctx)
	case j.url != "":
		return j.proxy(ctx)
	}
	return j.serveChild(ctx)
}

// server is the transport to the server.
func (j *junction) server() mcp.Transport {
	return j.target.transport(j.trace, func(line string) { fmt.Fprintln(j.err, line) }, j.err)
}

// stdio is the transport to the client that has started this program.
func (j *junction) stdio() mcp.Transport {
	if j.in == os.Stdin {
		return mcp.Stdio()
	}
	return &mcp.Stream{Reader: j.in, Writer: j.out} // in tests
}

// joinStdio joins the client on standard input and output to the server.
func (j *junction) joinStdio(ctx context.Context) error {
	there, err := j.server().Connect(ctx)
	if err != nil {
		return err
	}
	here, err := j.stdio().Connect(ctx)
	if err != nil {
		return errors.Join(err, there.Close())
	}
	p := &pair{client: here, server: there, hide: replacer(j.secrets()), open: make(map[string]string)}
	if j.url != "" {
		p.trace = j.trace // what never becomes a request
	}
	return p.run(ctx)
}

// A pair are two connections that are joined.
type pair struct {
	client, server mcp.Conn
	hide           *strings.Replacer
	trace          *tracer // of messages that are refused here; may be nil

	writing sync.Mutex // to the client
	mu      sync.Mutex
	open    map[string]string // methods of the client's requests without an answer, by id
}

const (
	// lastAnswers is how long answers are waited for once the client sends
	// nothing more.
	lastAnswers = 2 * time.Second
	lastCheck   = 10 * time.Millisecond
)

// run passes messages on until one side ends, and then ends the other.
func (p *pair) run(ctx context.Context) error {
	clientEnded, serverEnded := make(chan error, 1), make(chan error, 1)
	go func() { clientEnded <- p.fromClient(ctx) }()
	quiet := make(chan struct{}) // nothing goes to the client any more
	go func() {
		defer close(quiet)
		serverEnded <- p.fromServer(ctx)
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-serverEnded:
	case err = <-clientEnded:
		for end := time.Now().Add(lastAnswers); errors.Is(err, io.EOF) && p.waits() && time.Now().Before(end); time.Sleep(lastCheck) {
			if len(serverEnded) > 0 || ctx.Err() != nil {
				break
			}
		}
	}
	closed := p.server.Close()
	select {
	case <-quiet:
	case <-time.After(lastAnswers): // the client does not read
	}
	p.client.Close()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && ctx.Err() == nil {
		err = closed
	}
	return err
}

// waits reports whether the client has requests without an answer. A
// subscription has none before it ends.
func (p *pair) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, method := range p.open {
		if method != "subscriptions/listen" {
			return true
		}
	}
	return false
}

func (p *pair) fromClient(ctx context.Context) error {
	for {
		frame, err := p.client.Read(ctx)
		var bad *mcp.Error
		switch {
		case errors.As(err, &bad):
			p.refuse(ctx, nil, nil, bad)
			continue
		case err != nil:
			return err
		}
		m := parseMessage(frame)
		p.mu.Lock()
		switch method := m.text("method"); {
		case m.isRequest():
			p.open[string(m["id"])] = method
		case method == "notifications/cancelled":
			delete(p.open, string(m.in("params")["requestId"]))
		}
		p.mu.Unlock()
		if err := p.server.Write(ctx, frame); errors.As(err, &bad) {
			p.refuse(ctx, frame, m["id"], bad)
		} else if err != nil {
			return err
		}
	}
}

// refuse answers a message that cannot go on.
func (p *pair) refuse(ctx context.Context, frame []byte, id json.RawMessage, bad *mcp.Error) {
	answer := failure(id, bad.Code, bad.Message)
	if p.trace != nil && frame != nil {
		p.trace.message(fromClient, frame)
		p.trace.message(fromServer, answer)
	}
	p.toClient(ctx, answer)
	p.answered(id)
}

// answered notes that the client has its answer.
func (p *pair) answered(id json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, string(id))
}

func (p *pair) fromServer(ctx context.Context) error {
	for {
		frame, err := p.server.Read(ctx)
		var bad *mcp.Error
		var failed *mcp.CallError
		switch {
		case errors.As(err, &failed):
			frame = p.failed(failed)
		case errors.As(err, &bad):
			continue // one frame that makes no sense
		case err != nil:
			return err
		}
		m := parseMessage(frame) // before the frame is given away
		if err := p.toClient(ctx, frame); err != nil {
			return err
		}
		if m["method"] == nil {
			p.answered(m["id"])
		}
	}
}

func (p *pair) toClient(ctx context.Context, frame []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.client.Write(ctx, frame)
}

// failed is what the client is told of a request that got no answer of the
// protocol's. One that only asks whether the server is modern hears that it
// is not, as it would from the server itself.
func (p *pair) failed(e *mcp.CallError) []byte {
	id, err := json.Marshal(e.ID)
	if err != nil {
		return failure(nil, mcp.CodeInternalError, e.Error())
	}
	p.mu.Lock()
	method := p.open[string(id)]
	p.mu.Unlock()
	var answer *mcp.HTTPError
	var said *mcp.Error
	switch {
	case errors.As(e.Err, &said) && (method != "server/discover" || said.Code != mcp.CodeInvalidRequest): // with a status of HTTP, which is of no interest here
		return errorResponse(id, said)
	case method == "server/discover" && errors.As(e.Err, &answer) && isOld(answer.Status):
		return failure(id, mcp.CodeMethodNotFound, "method not found: "+method)
	}
	return failure(id, mcp.CodeInternalError, p.hide.Replace(hideText(e.Error())))
}

// isOld reports whether a server of an older revision may answer like this to
// a request of a newer one.
func isOld(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// A message is what there is in a message, member by member; nil if it is
// none.
type message map[string]json.RawMessage

func parseMessage(frame []byte) (m message) {
	if json.Unmarshal(frame, &m) != nil {
		return nil
	}
	return m
}

func (m message) isRequest() bool { return m["method"] != nil && m["id"] != nil }

// text is a member that is a string; "" otherwise.
func (m message) text(name string) (text string) {
	if json.Unmarshal(m[name], &text) != nil {
		return ""
	}
	return text
}

// in is a member that is an object; nil otherwise.
func (m message) in(name string) message { return parseMessage(m[name]) }

// failure makes an error response; an id of nil is null.
func failure(id json.RawMessage, code int, text string) []byte {
	return errorResponse(id, &mcp.Error{Code: code, Message: text})
}

func errorResponse(id json.RawMessage, e *mcp.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	type body struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	frame, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   body            `json:"error"`
	}{"2.0", id, body(*e)})
	if err != nil {
		panic(err) // cannot be: all of it was JSON
	}
	return frame
}

// proxy joins HTTP clients to a URL.
func (j *junction) proxy(ctx context.Context) error {
	to, err := url.Parse(j.url)
	if err != nil {
		return err
	}
	l, err := listenHTTP(j.addr)
	if err != nil {
		return err
	}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1, // events must not wait
		Transport:     j.trace,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the trace says it
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.User, r.Out.Host = to.Scheme, to.Host, to.User, ""
			if r.In.URL.Path == proxyPath { // other paths are what the server itself named
				r.Out.URL.Path, r.Out.URL.RawPath = to.Path, to.RawPath
				if r.In.URL.RawQuery == "" {
					r.Out.URL.RawQuery = to.RawQuery
				}
			}
			if password, ok := to.User.Password(); ok && r.Out.Header.Get("Authorization") == "" {
				r.Out.SetBasicAuth(to.User.Username(), password)
			}
			for name, values := range j.header {
				r.Out.Header[name] = values
			}
			r.Out.Header.Del("Accept-Encoding") // so that it can be read
			if r.In.Header.Get("Origin") != "" {
				r.Out.Header.Set("Origin", to.Scheme+"://"+to.Host)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadGateway)
			w.Write(failure(nil, mcp.CodeInternalError, hideText(err.Error())))
		},
	}
	announce(j.err, l, "MCP", proxyPath)
	return serveHTTP(ctx, l, guarded(http.MaxBytesHandler(forward, maxProxied)), func(context.Context) {})
}

const (
	proxyPath  = "/mcp"
	maxProxied = 64 << 20 // bytes of a body
)

// serveChild joins HTTP clients to child processes.
func (j *junction) serveChild(ctx context.Context) error {
	if _, err := exec.LookPath(j.command[0]); err != nil {
		return err
	}
	l, err := listenHTTP(j.addr)
	if err != nil {
		return err
	}
	g := &gateway{start: j.server().Connect, log: j.err, probe: probeTime, sessions: make(map[string]*process)}
	announce(j.err, l, "MCP", proxyPath)
	mux := http.NewServeMux()
	mux.Handle(proxyPath, g)
	return serveHTTP(ctx, l, guarded(mux), func(context.Context) { g.end() })
}
