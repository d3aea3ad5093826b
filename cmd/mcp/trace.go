package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpkit/mcp"
)

// A tracer prints what two sides send each other, without secrets. A nil one
// prints nothing.
type tracer struct {
	full bool // print messages to their end

	mu   sync.Mutex
	w    io.Writer
	open map[string]opened // requests without a response, by who asked and id
}

type opened struct {
	method string
	at     time.Time
}

// A side is who speaks.
type side string

const (
	fromClient side = "→"
	fromServer side = "←"
)

func (s side) other() side {
	if s == fromClient {
		return fromServer
	}
	return fromClient
}

const (
	shownBytes = 1000    // of a message, unless all is to be seen
	keptBytes  = 4 << 20 // of a body, to show it
	maxOpen    = 10000   // requests that are remembered
)

func newTracer(w io.Writer, full bool) *tracer {
	return &tracer{w: w, full: full, open: make(map[string]opened)}
}

// line prints what happened now.
func (t *tracer) line(from side, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(t.w, "%s %s %s\n", time.Now().Format("15:04:05.000"), from, text)
}

// message prints a message of the protocol, or several, or what is none.
func (t *tracer) message(from side, frame []byte) {
	shown, ok := hideJSON(frame)
	if !ok {
		t.line(from, "not JSON: %s", t.cut(fmt.Sprintf("%q", hideText(string(frame)))))
		return
	}
	var batch []json.RawMessage
	if json.Unmarshal(frame, &batch) == nil {
		t.line(from, "batch of %d", len(batch))
		for _, frame := range batch {
			t.message(from, frame)
		}
		return
	}
	t.mu.Lock()
	kind := t.kind(from, frame)
	t.mu.Unlock()
	t.line(from, "%s %s", kind, t.cut(string(shown)))
}

// kind says what a message is. Under t.mu.
func (t *tracer) kind(from side, frame []byte) string {
	var m struct {
		ID            json.RawMessage
		Method        string
		Result, Error json.RawMessage
	}
	if json.Unmarshal(frame, &m) != nil {
		return "message"
	}
	switch id := string(m.ID); {
	case m.Method != "" && id == "":
		return hideText(m.Method)
	case m.Method != "":
		if len(t.open) < maxOpen {
			t.open[string(from)+id] = opened{m.Method, time.Now()}
		}
		return fmt.Sprintf("%s, request %s", hideText(m.Method), id)
	default:
		what := "result"
		if m.Error != nil {
			what = "error"
		}
		if id == "" || id == "null" {
			return what + " without an id"
		}
		asked, ok := t.open[string(from.other())+id]
		if !ok {
			return fmt.Sprintf("%s of %s", what, id)
		}
		delete(t.open, string(from.other())+id)
		return fmt.Sprintf("%s of %s, %s, after %s", what, id, hideText(asked.method), since(asked.at))
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Microsecond) }

// cut leaves the end of a long text out.
func (t *tracer) cut(text string) string {
	if t.full || len(text) <= shownBytes {
		return text
	}
	return fmt.Sprintf("%s… %d bytes more", strings.ToValidUTF8(text[:shownBytes], ""), len(text)-shownBytes)
}

// transport is a transport whose messages are printed.
func (t *tracer) transport(of mcp.Transport) mcp.Transport {
	if t == nil {
		return of
	}
	return &tracedTransport{of, t}
}

type tracedTransport struct {
	mcp.Transport
	t *tracer
}

func (tt *tracedTransport) Connect(ctx context.Context) (mcp.Conn, error) {
	conn, err := tt.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tracedConn{conn, tt.t}, nil
}

type tracedConn struct {
	mcp.Conn
	t *tracer
}

func (c *tracedConn) Write(ctx context.Context, frame []byte) error {
	c.t.message(fromClient, frame)
	return c.Conn.Write(ctx, frame)
}

func (c *tracedConn) Read(ctx context.Context) ([]byte, error) {
	frame, err := c.Conn.Read(ctx)
	switch {
	case err == nil:
		c.t.message(fromServer, frame)
	case !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrClosed):
		c.t.line(fromServer, "%s", hideText(err.Error()))
	}
	return frame, err
}

// client makes requests that are printed; nil for a nil tracer, which means
// the usual one.
func (t *tracer) client() *http.Client {
	if t == nil {
		return nil
	}
	return &http.Client{Transport: t}
}

// RoundTrip sends an HTTP request and prints it and what comes back.
func (t *tracer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	t.line(fromClient, "%s %s%s", r.Method, hideText(r.URL.String()), headerLines(r.Header))
	if body != nil {
		t.message(fromClient, body)
	}
	start := time.Now()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.line(fromServer, "no response to %s: %s", r.Method, hideText(err.Error()))
		return nil, err
	}
	t.line(fromServer, "%d %s to %s, after %s%s", response.StatusCode, http.StatusText(response.StatusCode), r.Method, since(start), headerLines(response.Header))
	typ, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	response.Body = &tracedBody{ReadCloser: response.Body, t: t, events: typ == "text/event-stream"}
	return response, nil
}

// shownHeaders are those that say something of the protocol; secret ones are
// shown without what they say.
var shownHeaders = []string{
	"Accept", "Allow", "Access-Control-Allow-Origin", "Authorization", "Content-Type", "Cookie", "Dpop", "Last-Event-Id",
	"Location", "Origin", "Proxy-Authorization", "Retry-After", "Set-Cookie", "Www-Authenticate",
}

func headerLines(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		ours := strings.HasPrefix(name, "Mcp-")
		secret := isSecret(name)
		if !ours && !secret && !slices.Contains(shownHeaders, name) {
			continue
		}
		for _, value := range h[name] {
			switch {
			case name == "Mcp-Session-Id":
				value = mark(value)
			case secret || name == "Dpop":
				scheme, _, ok := strings.Cut(value, " ")
				if value = hidden; ok && name != "Cookie" && name != "Set-Cookie" {
					value = scheme + " " + hidden
				}
			default:
				value = hideText(value)
			}
			fmt.Fprintf(&b, "\n    %s: %s", name, value)
		}
	}
	return b.String()
}

// mark shows whether two secrets are the same, and nothing else of them.
func mark(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return fmt.Sprintf("[hidden, mark %x]", sum[:2])
}

// A tracedBody prints what is read from it: events as they come, anything
// else when it is over.
type tracedBody struct {
	io.ReadCloser
	t      *tracer
	events bool

	kept []byte // not printed yet
	more int    // bytes that were not kept
	once sync.Once
}

func (b *tracedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	keep := min(n, keptBytes-len(b.kept))
	b.kept = append(b.kept, p[:keep]...)
	b.more += n - keep
	if b.events {
		b.printEvents()
	}
	if err != nil {
		b.over(err)
	}
	return n, err
}

func (b *tracedBody) Close() error {
	err := b.ReadCloser.Close()
	b.over(nil)
	return err
}

// over prints what is left, and how a stream ended.
func (b *tracedBody) over(err error) {
	b.once.Do(func() {
		switch {
		case b.events && err == io.EOF:
			b.t.line(fromServer, "the stream ends")
		case b.events && (err == nil || errors.Is(err, context.Canceled)):
			b.t.line(fromClient, "the stream is left")
		case b.events || err != nil && err != io.EOF:
			b.t.line(fromServer, "the response is cut off: %s", hideText(err.Error()))
		case b.more > 0:
			b.t.line(fromServer, "%d bytes", len(b.kept)+b.more)
		case len(bytes.TrimSpace(b.kept)) > 0:
			b.t.message(fromServer, b.kept)
		}
		b.kept = nil
	})
}

// printEvents prints the events that are complete.
func (b *tracedBody) printEvents() {
	for {
		at, size := blankLine(b.kept)
		if at < 0 {
			if b.more > 0 { // too large to be shown
				b.kept, b.more = nil, 0
			}
			return
		}
		b.event(string(b.kept[:at]))
		b.kept = b.kept[at+size:]
	}
}

// blankLine finds the end of the first event.
func blankLine(text []byte) (at, size int) {
	at = -1
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(text, []byte(end)); i >= 0 && (at < 0 || i < at) {
			at, size = i, len(end)
		}
	}
	return at, size
}

func (b *tracedBody) event(text string) {
	var data, notes []string
	name := "message"
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id", "retry":
			notes = append(notes, field+" "+value)
		}
	}
	joined := strings.Join(data, "\n")
	switch {
	case joined != "" && name == "message":
		b.t.message(fromServer, []byte(joined))
	case data != nil || notes != nil:
		notes = append([]string{name}, notes...)
		b.t.line(fromServer, "event (%s) %s", strings.Join(notes, ", "), b.t.cut(hideText(joined)))
	}
}
