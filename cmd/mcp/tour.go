package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpkit/mcp"
)

// tourTime is how long each half of the tour may take.
const tourTime = 20 * time.Second

// tourPage is how many entries the demo's pages have on the tour.
const tourPage = 5

// A leg is one run through the stops of the tour.
type leg struct {
	title    string
	versions []string // nil for all
	want     string   // revision
	start    func(*guide) error
}

var legs = []leg{
	{"The legacy era: a session, opened by initialize", []string{mcp.Version20251125}, mcp.Version20251125, (*guide).startChild},
	{"The modern era: no session, every request stands alone", nil, mcp.Version20260728, (*guide).startChild},
	{"Streamable HTTP, the legacy era", []string{mcp.Version20251125}, mcp.Version20251125, (*guide).startHTTP},
	{"Streamable HTTP, the modern era", nil, mcp.Version20260728, (*guide).startHTTP},
	{"HTTP+SSE, the transport of the first revision", []string{mcp.Version20241105}, mcp.Version20241105, (*guide).startSSE},
}

// tour starts the demo for each leg, uses all of it, and prints what happens.
// What is not as expected is its error.
func tour(ctx context.Context, stdout io.Writer) error {
	for _, l := range legs {
		fmt.Fprintf(stdout, "%s (%s)\n", l.title, l.want)
		if err := l.run(ctx, stdout); err != nil {
			return fmt.Errorf("tour: %s, %s: %w", l.title, l.want, err)
		}
		fmt.Fprintln(stdout)
	}
	fmt.Fprintln(stdout, "All went as expected.")
	return nil
}

// A guide leads through one leg.
type guide struct {
	cs      *mcp.ClientSession
	version string
	modern  bool

	demo  func() mcp.Transport // to the demo
	fresh bool                 // it is a new demo each time: a child process
	url   string               // of the demo, over HTTP
	end   func() error         // ends the demo, over HTTP

	both chan struct{} // where two questions meet

	mu    sync.Mutex
	asked []string        // what the server asked this client, and what it logged
	sent  map[string]bool // methods that went out, and that came in
	heard map[string]bool
}

func (l *leg) run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, tourTime)
	defer cancel()
	g := &guide{
		version: l.want, modern: l.want == mcp.Version20260728, end: func() error { return nil },
		both: make(chan struct{}), sent: make(map[string]bool), heard: make(map[string]bool),
	}
	if err := l.start(g); err != nil {
		return err
	}
	defer g.end()
	if g.cs, err = g.client(l.versions).Connect(ctx, g.demo()); err != nil {
		return err
	}
	defer func() {
		// Closing waits for the child.
		if closeErr := g.cs.Close(); closeErr != nil && err == nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
	}()
	if got := g.cs.Server().ProtocolVersion; got != l.want {
		return fmt.Errorf("the server speaks %s", got)
	}
	for _, stop := range g.stops() {
		if l.want < brought[stop.name] {
			continue
		}
		got, err := stop.see(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", stop.name, err)
		}
		fmt.Fprintf(out, "  %-20s %s\n", stop.name, got)
		begin, open := strings.CutSuffix(stop.want, "…")
		if got != stop.want && !(open && strings.HasPrefix(got, begin)) {
			return fmt.Errorf("%s: expected %s", stop.name, stop.want)
		}
	}
	return nil
}

// startChild makes the demo a child process: this program.
func (g *guide) startChild() error {
	program, err := os.Executable()
	g.fresh = true
	g.demo = func() mcp.Transport {
		return &mcp.Command{Cmd: exec.Command(program, "demo", "--page", fmt.Sprint(tourPage))}
	}
	return err
}

// startHTTP serves the demo from this process.
func (g *guide) startHTTP() error {
	l, err := listenHTTP("0")
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	handler, shutdown := demoHandler(demoServer(log, tourPage), log)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	var ended error
	go func() {
		served <- serveHTTP(ctx, l, handler, func(ctx context.Context) { ended = shutdown(ctx) })
	}()
	g.end = sync.OnceValue(func() error {
		stop()
		return cmp.Or(<-served, ended)
	})
	g.url = "http://" + l.Addr().String()
	g.demo = func() mcp.Transport { return &mcp.HTTP{URL: g.url + "/mcp"} }
	return nil
}

// startSSE serves the demo to clients of HTTP+SSE.
func (g *guide) startSSE() error {
	err := g.startHTTP()
	g.demo = func() mcp.Transport { return &mcp.HTTP{URL: g.url + "/sse"} }
	return err
}

// client is one that can do everything.
func (g *guide) client(versions []string) *mcp.Client {
	c := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, &mcp.ClientOptions{
		Versions: versions, Elicit: g.elicit, Sample: g.sample, Roots: g.roots, Log: g.log,
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
			Sampling:    &mcp.SamplingCapability{Tools: &struct{}{}},
			Roots:       &mcp.RootsCapability{},
		},
	})
	c.Use(g.watch)
	return c
}

// watch is middleware that notes what goes out and what comes in.
func (g *guide) watch(next mcp.Handler) mcp.Handler {
	return func(ctx context.Context, req *mcp.Request) (any, error) {
		g.mu.Lock()
		if req.Outgoing {
			g.sent[req.Method] = true
		} else {
			g.heard[req.Method] = true
		}
		g.mu.Unlock()
		return next(ctx, req)
	}
}

// A stop of the tour shows one feature.
type stop struct {
	name string
	see  func(ctx context.Context) (got string, err error)
	want string // all or, before "…", the beginning of what there is to see
}

// brought are the revisions that brought what some stops show.
var brought = map[string]string{
	"call content": mcp.Version20250618, "complete": mcp.Version20250618, "elicitation": mcp.Version20250618, "elicitation by URL": mcp.Version20251125,
	"a page first": mcp.Version20251125, "two at once": mcp.Version20250618, "round by round": mcp.Version20250618,
	"sampling with tools": mcp.Version20251125,
}

func (g *guide) stops() []stop {
	return slices.Concat(g.offers(), g.uses(), g.asks(), g.tells(), g.manages())
}

// offers show what the server says that it has.
func (g *guide) offers() []stop {
	return []stop{
		{"server", g.server, "demo " + version + ": A server to try things with.…"},
		{"ping", g.ping, "it is there"},
		{"tools", g.tools, "echo, add, primes, content, …"},
		{"resources", g.resources, "demo://readme, demo://logo, demo://clock; " + profileTemplate + ", file:///demo/{+path}"},
		{"prompts", g.prompts, "greet(name, style), translate(language, dialect), review()"},
		{"pagination", g.pagination, "pages of 5, and the same tools; an invented cursor: error -32602: …"},
	}
}

// uses show what a client gets for asking.
func (g *guide) uses() []stop {
	return []stop{
		{"call echo", g.tool("echo", echoArgs{"Grüße, 世界"}), "Grüße, 世界"},
		{"call add", g.add, "2 + 40 = 42"},
		{"call primes", g.primes, "[2 3 5 7]"},
		{"call content", g.content, "text, image, audio, resource_link, resource"},
		{"wrong arguments", g.tool("add", map[string]any{"a": "two", "b": 40}), "isError: …"},
		{"a tool error", g.tool("fail", nil), "isError: this tool always fails"},
		{"a protocol error", g.tool("panic", nil), "error -32603: internal error"},
		{"read demo://readme", g.read("demo://readme"), "text/markdown: # demo…"},
		{"read demo://logo", g.read("demo://logo"), fmt.Sprintf("image/png: %d bytes", len(demoLogo()))},
		{"read a template", g.read("demo://users/42/profile"), "text/plain: The profile of user 42"},
		{"read nothing", g.read("demo://nothing"), "error -32602: …"},
		{"read a file", g.read(filesURI + "hello.txt"), "text/plain: Hello from a file."},
		{"read out of there", g.read(filesURI + "%2e%2e/hello.txt"), "error -32602: …"},
		{"get greet", g.prompt("greet", map[string]string{"name": "Ada", "style": "formal"}), "user: Greet Ada in a formal way."},
		{"get review", g.prompt("review", nil), "user: Review this text: | user: demo://readme"},
		{"complete", g.complete, "fr: friendly; with German before: Swiss; of all ids: 100 of 250"},
		{"progress", g.progress, "1/3 2/3 3/3 lift-off"},
		{"a method of its own", g.reverse, "adA"},
		{"cancellation", g.cancel, "wait was given up, the server heard of it and still answers"},
	}
}

// asks show what the server asks the client meanwhile.
func (g *guide) asks() []stop {
	return []stop{
		{"elicitation", g.tool("ask", askArgs{"Who are you?"}), `asked "Who are you?": accept {"name":"Ada","agree":true}`},
		{"elicitation by URL", g.tool("pay", payArgs{7}), `asked to open https://pay.example/order?coins=7: 7 coins were paid, if the page says so`},
		{"a page first", g.tool("login", nil), "asked to open https://login.example/: logged in"},
		{"two at once", g.tool("survey", nil), `asked "Which animal do you like?": asked "Which colour do you like?": accept {"colour":"blue"}; accept {"animal":"cat"}`},
		{"round by round", g.tool("book", nil), `asked "Which day?": asked "Seat 1 is free. Are you sure?": seat 1 was booked`},
		{"sampling", g.tool("sample", sampleArgs{"Say hi"}), `asked the model "Say hi": Hi!`},
		{"sampling with tools", g.tool("agent", sampleArgs{"What is 20 + 22?"}), `asked the model "What is 20 + 22?": told the model "42": It is 42.`},
		{"roots", g.tool("roots", nil), "asked for roots: file:///tour/one file:///tour/two"},
	}
}

// tells show what the server says by itself.
func (g *guide) tells() []stop {
	return []stop{
		{"log", g.logs, "warning: mind the gap"},
		{"changes", g.changes, "prompts, resources, tools, demo://readme; none after the end"},
	}
}

// manages show what the client does by itself, and the end.
func (g *guide) manages() []stop {
	cached := "the tools were asked for again: the server may not say how long they are good for"
	if g.modern {
		cached = "the tools were not asked for again"
	}
	crash := stop{"restart", g.restart, "the server died, and is there again"}
	end := stop{"close", g.close, "clean-up: second, first; the server's folder is gone; nothing goes out any more"}
	if g.url != "" {
		crash = stop{"the other era", g.otherEra, "at the same time, from the same server: there is room for all"}
	}
	return []stop{
		{"cache", g.cache, cached},
		{"middleware", g.middleware, "tools/call went out, sampling/createMessage came in"},
		{"a known server", g.known, "not asked what it speaks; pay is hidden from who opens no pages: error -32602: unknown tool: pay"},
		{"refused here", g.refusal, "no prompts, nothing was sent; with Insist: error -32601: method not found: prompts/get"},
		crash, end,
	}
}
