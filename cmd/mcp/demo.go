package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpkit/mcp"
)

// demo serves one client over standard input and output, or any number over
// HTTP.
func demo(ctx context.Context, args []string, stderr io.Writer) error {
	logger := warnings(stderr)
	page, addr, auth := 0, "", false
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints the error
	fs.IntVar(&page, "page", 0, "")
	fs.StringVar(&addr, "http", "", "")
	fs.BoolVar(&auth, "auth", false, "")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return &usageError{"demo: " + err.Error()}
	case fs.NArg() > 0:
		return &usageError{fmt.Sprintf("demo: what is %q?", fs.Arg(0))}
	case page < 0:
		return &usageError{"demo: -page must be more than 0"}
	case auth && addr == "":
		return &usageError{"demo: --auth goes with --http"}
	case auth:
		return demoAuth(ctx, addr, demoServer(logger, page), logger, stderr)
	}
	if addr != "" {
		return demoHTTP(ctx, addr, demoServer(logger, page), logger, stderr)
	}
	err := demoServer(logger, page).Run(ctx, mcp.Stdio())
	if ctx.Err() != nil { // being told to stop is how a server ends
		return nil
	}
	return err
}

// demoHTTP serves the demo at a URL, and at another for clients of HTTP+SSE.
func demoHTTP(ctx context.Context, addr string, s *mcp.Server, logger *slog.Logger, stderr io.Writer) error {
	l, err := listenHTTP(addr)
	if err != nil {
		return err
	}
	handler, shutdown := demoHandler(s, logger)
	announce(stderr, l, "MCP", "/mcp")
	announce(stderr, l, "HTTP+SSE (2024-11-05)", "/sse")
	return serveHTTP(ctx, l, handler, func(ctx context.Context) { shutdown(ctx) })
}

// demoHandler makes the demo something for net/http.
func demoHandler(s *mcp.Server, logger *slog.Logger) (_ http.Handler, shutdown func(context.Context) error) {
	s.RemoveTools("die") // it would end the server for all
	h := mcp.NewHTTPHandler(s, &mcp.HTTPOptions{Logger: logger})
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle("/sse", h.SSE())
	return mux, h.Shutdown
}

// A demoApp is what the handlers of the demo share.
type demoApp struct {
	*mcp.Server
	seats   atomic.Int64 // given away by book
	visited atomic.Bool  // the page of login

	mu       sync.Mutex
	requests map[string]int // how many there were, by method
}

// demoServer returns a server that shows every feature once. Its lists have
// pages of that many entries; 0 is one page for all.
func demoServer(logger *slog.Logger, page int) *mcp.Server {
	s := &demoApp{requests: make(map[string]int)}
	s.Server = mcp.NewServer(mcp.Implementation{
		Name: "demo", Title: "Demo", Version: version, Description: "Shows what the protocol can do",
		Icons: []mcp.Icon{{Src: demoIcon(), MIMEType: "image/png", Sizes: []string{"16x16"}}},
	}, &mcp.ServerOptions{
		Instructions: "A server to try things with. Each tool shows one feature of the protocol; demo://readme says which.",
		Logger:       logger,
		PageSize:     page,
		Complete:     completeDemo,
		Filter:       canDo,
		Cache:        mcp.CacheHints{TTLMs: time.Minute.Milliseconds()},
		Lifespan:     s.live,
	})
	s.Use(s.count)
	mcp.Handle(s.Server, "demo/reverse", reverse)
	s.addPlainTools()
	s.addTalkingTools()
	s.addAskingTools()
	s.addResources()
	s.addPrompts()
	return s.Server
}

// A life is what one connection to the demo has for itself, in the context of
// its handlers.
type life struct {
	started time.Time
	folder  string
	files   mcp.ResourceHandler
}

type lifeKey struct{}

const filesURI = "file:///demo/"

// live makes a folder with files that can be read, and lets the clock tick,
// for as long as the demo serves.
func (s *demoApp) live(ctx context.Context) (context.Context, func(), error) {
	folder, err := os.MkdirTemp("", "mcp-demo-")
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(folder, "hello.txt"), []byte("Hello from a file.\n"), 0o666),
		os.WriteFile(filepath.Join(folder, "logo.png"), demoLogo(), 0o666))
	root, openErr := os.OpenRoot(folder)
	if err = errors.Join(err, openErr); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	ctx = context.WithValue(ctx, lifeKey{}, &life{time.Now(), folder, mcp.FileHandler(root, filesURI)})
	ticking, stop := context.WithCancel(context.WithoutCancel(ctx))
	go s.tick(ticking)
	return ctx, func() {
		stop()
		root.Close()
		os.RemoveAll(folder)
	}, nil
}

// tick tells each second that the clock has changed.
func (s *demoApp) tick(ctx context.Context) {
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	for {
		select {
		case <-seconds.C:
			s.ResourceUpdated("demo://clock")
		case <-ctx.Done():
			return
		}
	}
}

// canDo hides the tools that need a page from clients that cannot open any.
func canDo(_ context.Context, req *mcp.Request, name string) bool {
	e := req.Capabilities().Elicitation
	return name != "pay" && name != "login" || e != nil && e.URL != nil
}

// reverse serves a method that the protocol does not have.
func reverse(ctx context.Context, req *mcp.Request, in echoArgs) (echoArgs, error) {
	runes := []rune(in.Text)
	slices.Reverse(runes)
	return echoArgs{string(runes)}, nil
}

// count is middleware: it counts what arrives, and what is given up: of that
// a server hears by a notification, or over HTTP by the end of the request.
func (s *demoApp) count(next mcp.Handler) mcp.Handler {
	return func(ctx context.Context, req *mcp.Request) (any, error) {
		s.mu.Lock()
		s.requests[req.Method]++
		s.mu.Unlock()
		result, err := next(ctx, req)
		if errors.Is(ctx.Err(), context.Canceled) {
			s.mu.Lock()
			s.requests["(cancelled)"]++
			s.mu.Unlock()
		}
		return result, err
	}
}

type noArgs struct{}

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type addArgs struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addResult struct {
	Sum float64 `json:"sum"`
}

type primesArgs struct {
	Below int `json:"below" jsonschema:"minimum=0,maximum=1000,default=20"`
}

// addPlainTools registers tools that give or take: a result of each form, and
// each kind of error.
func (s *demoApp) addPlainTools() {
	yes := true
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: &yes}
	mcp.AddTool(s.Server, mcp.Tool{Name: "echo", Description: "Says the text again", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in echoArgs) (string, error) {
			return in.Text, nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "add", Description: "Adds two numbers: a structured result", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in addArgs) (addResult, error) {
			return addResult{in.A + in.B}, nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "primes", Description: "Lists prime numbers: a structured result that is no object", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in primesArgs) ([]int, error) {
			return primes(in.Below), nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "content", Description: "Returns every kind of content", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in noArgs) ([]mcp.Content, error) {
			return demoContent(), nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "fail", Description: "Fails: an error for the model"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			return "", errors.New("this tool always fails")
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "panic", Description: "Panics: an error of the protocol"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			panic("the panic tool was called")
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "die", Description: "Ends the server at once, without an answer"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			os.Exit(3)
			return "", nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "lifespan", Description: "Tells what the server has as long as it serves", Annotations: readOnly}, lifespan)
	mcp.AddTool(s.Server, mcp.Tool{Name: "requests", Description: "Tells how many requests and notifications there were, by method, and how many were cancelled", Annotations: readOnly},
		func(ctx context.Context, req *mcp.Request, in noArgs) (map[string]int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return maps.Clone(s.requests), nil
		})
}

type lifeResult struct {
	Up     string `json:"up" jsonschema:"how long the demo has been serving"`
	Folder string `json:"folder" jsonschema:"where its files are until it ends"`
}

func lifespan(ctx context.Context, req *mcp.Request, in noArgs) (lifeResult, error) {
	l, ok := ctx.Value(lifeKey{}).(*life)
	if !ok {
		return lifeResult{}, errors.New("there is no lifespan")
	}
	return lifeResult{time.Since(l.started).Round(time.Millisecond).String(), l.folder}, nil
}

func primes(below int) []int {
	var found []int
next:
	for n := 2; n < below; n++ {
		for _, p := range found {
			if n%p == 0 {
				continue next
			}
		}
		found = append(found, n)
	}
	return found
}

// demoContent is a block of every kind that a tool can return.
func demoContent() []mcp.Content {
	most, some := 1.0, 0.5
	text := mcp.Text("A text for everyone")
	text.Annotations = &mcp.Annotations{Audience: []mcp.Role{"user", "assistant"}, Priority: &most}
	picture := mcp.Image(demoLogo(), "image/png")
	picture.Annotations = &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: &some}
	return []mcp.Content{
		text, picture, mcp.Audio(demoSound(), "audio/wav"),
		mcp.ResourceLink(mcp.Resource{URI: "demo://logo", Name: "logo", MIMEType: "image/png"}),
		mcp.EmbeddedResource(mcp.ResourceContents{URI: "demo://readme", MIMEType: "text/markdown", Text: readme}),
	}
}

type countdownArgs struct {
	From    int `json:"from" jsonschema:"where to start,minimum=0,maximum=1000"`
	DelayMS int `json:"delayMs" jsonschema:"milliseconds between two counts,minimum=0,maximum=10000,default=0"`
}

type logArgs struct {
	Level   string `json:"level" jsonschema:"enum=debug|info|notice|warning|error|critical|alert|emergency"`
	Message string `json:"message"`
}

type bonusArgs struct {
	Have bool `json:"have" jsonschema:"add them (true) or remove them (false),default=true"`
}

// addTalkingTools registers tools that tell the client something beside their
// result.
func (s *demoApp) addTalkingTools() {
	mcp.AddTool(s.Server, mcp.Tool{Name: "countdown", Description: "Counts down to 0 and reports progress"}, countdown)
	mcp.AddTool(s.Server, mcp.Tool{Name: "wait", Description: "Waits until it is cancelled"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "log", Description: "Sends a log message to the client"},
		func(ctx context.Context, req *mcp.Request, in logArgs) (string, error) {
			req.Log().Log(ctx, logLevels[in.Level], in.Message)
			return "logged at " + in.Level, nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "touch", Description: "Tells clients that listen that demo://readme has changed"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			s.ResourceUpdated("demo://readme")
			return "demo://readme was touched", nil
		})
	mcp.AddTool(s.Server, mcp.Tool{Name: "bonus", Description: "Adds one more tool, prompt and resource, or removes them: changes of the lists"},
		func(ctx context.Context, req *mcp.Request, in bonusArgs) (string, error) {
			s.setBonus(in.Have)
			return fmt.Sprintf("bonus: %v", in.Have), nil
		})
}

// logLevels are the slog levels that stand for the protocol's.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "notice": slog.LevelInfo + 2, "warning": slog.LevelWarn,
	"error": slog.LevelError, "critical": slog.LevelError + 4, "alert": slog.LevelError + 8, "emergency": slog.LevelError + 12,
}

func countdown(ctx context.Context, req *mcp.Request, in countdownArgs) (string, error) {
	total := float64(in.From)
	for n := 1; n <= in.From; n++ {
		p := mcp.ProgressParams{Progress: float64(n), Total: &total, Message: fmt.Sprintf("%d to go", in.From-n)}
		if err := req.Progress(ctx, p); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(in.DelayMS) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "lift-off", nil
}

// setBonus changes the lists while the server serves.
func (s *demoApp) setBonus(have bool) {
	const name, uri = "bonus-tool", "demo://bonus"
	if !have {
		s.RemoveTools(name)
		s.RemovePrompts("bonus-prompt")
		s.RemoveResources(uri)
		return
	}
	mcp.AddTool(s.Server, mcp.Tool{Name: name, Description: "Is there only after bonus was called"},
		func(ctx context.Context, req *mcp.Request, in noArgs) (string, error) {
			return "a bonus", nil
		})
	s.AddPrompt(mcp.Prompt{Name: "bonus-prompt"}, func(ctx context.Context, req *mcp.Request) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: "user", Content: mcp.Text("A bonus, please.")}}}, nil
	})
	s.AddResource(mcp.Resource{URI: uri, Name: "bonus"}, func(ctx context.Context, req *mcp.Request) (*mcp.ReadResourceResult, error) {
		return contents(mcp.ResourceContents{MIMEType: "text/plain", Text: strings.Repeat("bonus ", 3)}), nil
	})
}
