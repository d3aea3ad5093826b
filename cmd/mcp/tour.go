package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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

// tour starts the demo twice, uses all of it, and prints what happens. What
// is not as expected is its error.
func tour(ctx context.Context, stdout io.Writer) error {
	for _, era := range []struct {
		title    string
		versions []string
		want     string // revision
	}{
		{"The legacy era: a session, opened by initialize", []string{mcp.Version20251125}, mcp.Version20251125},
		{"The modern era: no session, every request stands alone", nil, mcp.Version20260728},
	} {
		fmt.Fprintf(stdout, "%s (%s)\n", era.title, era.want)
		if err := tourEra(ctx, stdout, era.versions, era.want); err != nil {
			return fmt.Errorf("tour: %s: %w", era.want, err)
		}
		fmt.Fprintln(stdout)
	}
	fmt.Fprintln(stdout, "All went as expected.")
	return nil
}

// A guide leads through one era.
type guide struct {
	out io.Writer
	cs  *mcp.ClientSession

	mu    sync.Mutex
	asked []string // what the server asked this client, and what it logged
}

func tourEra(ctx context.Context, out io.Writer, versions []string, want string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, tourTime)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	g := &guide{out: out}
	client := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, &mcp.ClientOptions{
		Versions: versions, Elicit: g.elicit, Sample: g.sample, Roots: g.roots, Log: g.log,
	})
	if g.cs, err = client.Connect(ctx, &mcp.Command{Cmd: exec.Command(program, "demo")}); err != nil {
		return err
	}
	defer func() {
		// Closing waits for the child.
		if closeErr := g.cs.Close(); closeErr != nil && err == nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
	}()
	if got := g.cs.Server().ProtocolVersion; got != want {
		return fmt.Errorf("the server speaks %s", got)
	}
	for _, stop := range g.stops() {
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

// A stop of the tour shows one feature.
type stop struct {
	name string
	see  func(ctx context.Context) (got string, err error)
	want string // all or, before "…", the beginning of what there is to see
}

func (g *guide) stops() []stop {
	return []stop{
		{"server", g.server, "demo " + version + ": A server to try things with.…"},
		{"ping", g.ping, "it is there"},
		{"tools", g.tools, "echo, add, countdown, wait, fail, panic, log, touch, ask, sample, roots"},
		{"resources", g.resources, "demo://readme, demo://logo; " + profileTemplate},
		{"prompts", g.prompts, "greet(name, style), review()"},
		{"call echo", g.tool("echo", echoArgs{"Grüße, 世界"}), "Grüße, 世界"},
		{"call add", g.add, "2 + 40 = 42"},
		{"wrong arguments", g.tool("add", map[string]any{"a": "two", "b": 40}), "isError: …"},
		{"a tool error", g.tool("fail", nil), "isError: this tool always fails"},
		{"a protocol error", g.tool("panic", nil), "error -32603: internal error"},
		{"read demo://readme", g.read("demo://readme"), "text/markdown: # demo…"},
		{"read demo://logo", g.read("demo://logo"), fmt.Sprintf("image/png: %d bytes", len(demoLogo()))},
		{"read a template", g.read("demo://users/42/profile"), "text/plain: The profile of user 42"},
		{"read nothing", g.read("demo://nothing"), "error -32602: …"},
		{"get greet", g.prompt("greet", map[string]string{"name": "Ada", "style": "formal"}), "user: Greet Ada in a formal way."},
		{"get review", g.prompt("review", nil), "user: Review this text: | user: demo://readme"},
		{"complete fr", g.complete, "friendly"},
		{"progress", g.progress, "1/3 2/3 3/3 lift-off"},
		{"cancel", g.cancel, "wait was given up; the server still answers"},
		{"elicitation", g.tool("ask", askArgs{"Who are you?"}), `asked "Who are you?": accept {"name":"Ada","agree":true}`},
		{"sampling", g.tool("sample", sampleArgs{"Say hi"}), `asked the model "Say hi": Hi!`},
		{"roots", g.tool("roots", nil), "asked for roots: file:///tour/one file:///tour/two"},
		{"log", g.logs, "warning: mind the gap"},
		{"changes", g.changes, "notifications/resources/updated demo://readme"},
	}
}

func (g *guide) server(context.Context) (string, error) {
	s := g.cs.Server()
	return fmt.Sprintf("%s %s: %s", s.Name, s.Version, s.Instructions), nil
}

func (g *guide) ping(ctx context.Context) (string, error) {
	return "it is there", g.cs.Ping(ctx)
}

// names lists what a list method of the server returns.
func names[T any](list iter.Seq2[*T, error], name func(*T) string) (string, error) {
	var all []string
	for v, err := range list {
		if err != nil {
			return "", err
		}
		all = append(all, name(v))
	}
	return strings.Join(all, ", "), nil
}

func (g *guide) tools(ctx context.Context) (string, error) {
	return names(g.cs.Tools(ctx), func(t *mcp.Tool) string { return t.Name })
}

func (g *guide) resources(ctx context.Context) (string, error) {
	fixed, err := names(g.cs.Resources(ctx), func(r *mcp.Resource) string { return r.URI })
	if err != nil {
		return "", err
	}
	templates, err := names(g.cs.ResourceTemplates(ctx), func(t *mcp.ResourceTemplate) string { return t.URITemplate })
	return fixed + "; " + templates, err
}

func (g *guide) prompts(ctx context.Context) (string, error) {
	return names(g.cs.Prompts(ctx), func(p *mcp.Prompt) string {
		var args []string
		for _, a := range p.Arguments {
			args = append(args, a.Name)
		}
		return p.Name + "(" + strings.Join(args, ", ") + ")"
	})
}

// answered turns the server's own errors into something to see.
func answered(err error) (string, error) {
	var e *mcp.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d: %s", e.Code, e.Message), nil
	}
	return "", err
}

// tool calls a tool and shows what the server asked meanwhile and what the
// tool says, on one line.
func (g *guide) tool(name string, args any) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		text, err := mcp.CallTool[string](ctx, g.cs, name, args)
		var failed *mcp.ToolError
		switch {
		case errors.As(err, &failed):
			text = "isError: " + strings.TrimPrefix(failed.Error(), "mcp: ")
		case err != nil:
			return answered(err)
		}
		for _, q := range g.questions() {
			text = q + ": " + text
		}
		return strings.ReplaceAll(text, "\n", " "), nil
	}
}

func (g *guide) add(ctx context.Context) (string, error) {
	r, err := mcp.CallTool[addResult](ctx, g.cs, "add", addArgs{2, 40})
	return fmt.Sprintf("2 + 40 = %v", r.Sum), err
}

func (g *guide) read(uri string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		r, err := g.cs.ReadResource(ctx, uri)
		if err != nil {
			return answered(err)
		}
		var all []string
		for _, c := range r.Contents {
			what, _, _ := strings.Cut(c.Text, "\n")
			if c.Blob != nil {
				what = fmt.Sprintf("%d bytes", len(c.Blob))
			}
			all = append(all, c.MIMEType+": "+what)
		}
		return strings.Join(all, " | "), nil
	}
}

func (g *guide) prompt(name string, args map[string]string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		r, err := g.cs.GetPrompt(ctx, name, args)
		if err != nil {
			return answered(err)
		}
		var all []string
		for _, m := range r.Messages {
			what := m.Content.Text
			if m.Content.Resource != nil {
				what = m.Content.Resource.URI
			}
			all = append(all, string(m.Role)+": "+what)
		}
		return strings.Join(all, " | "), nil
	}
}

func (g *guide) complete(ctx context.Context) (string, error) {
	r, err := g.cs.Complete(ctx, &mcp.CompleteParams{
		Ref:      mcp.CompleteReference{Type: "ref/prompt", Name: "greet"},
		Argument: mcp.CompleteArgument{Name: "style", Value: "fr"},
	})
	if err != nil {
		return answered(err)
	}
	return strings.Join(r.Completion.Values, ", "), nil
}

func (g *guide) progress(ctx context.Context) (string, error) {
	var seen strings.Builder
	cs := g.cs.With(mcp.CallOptions{Progress: func(p mcp.ProgressParams) {
		if p.Total != nil {
			fmt.Fprintf(&seen, "%v/%v ", p.Progress, *p.Total)
		}
	}})
	text, err := mcp.CallTool[string](ctx, cs, "countdown", countdownArgs{From: 3, DelayMS: 20})
	return seen.String() + text, err
}

func (g *guide) cancel(ctx context.Context) (string, error) {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := g.cs.CallTool(short, "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("wait ended with %v", err)
	}
	return "wait was given up; the server still answers", g.cs.Ping(ctx)
}

func (g *guide) logs(ctx context.Context) (string, error) {
	if err := g.cs.SetLogLevel(ctx, "warning"); err != nil {
		return "", err
	}
	for _, args := range []logArgs{{"info", "not wanted"}, {"warning", "mind the gap"}} {
		if _, err := mcp.CallTool[string](ctx, g.cs, "log", args); err != nil {
			return "", err
		}
	}
	// Messages arrive before the answer, but are handled beside it.
	for {
		if got := g.questions(); got != nil {
			return strings.Join(got, ", "), nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (g *guide) changes(ctx context.Context) (string, error) {
	sub, err := g.cs.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"demo://readme"}})
	if err != nil {
		return "", err
	}
	defer sub.Close()
	if _, err := g.cs.CallTool(ctx, "touch", nil); err != nil {
		return "", err
	}
	for change, err := range sub.Events(ctx) {
		return change.Method + " " + change.URI, err
	}
	return "", errors.New("the subscription ended")
}

// questions returns what came from the server since it was last called.
func (g *guide) questions() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.asked = nil }()
	return slices.Clone(g.asked)
}

func (g *guide) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf(format, args...))
}

func (g *guide) elicit(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	g.note("asked %q", p.Message)
	return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":"Ada","agree":true}`)}, nil
}

func (g *guide) sample(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	g.note("asked the model %q", p.Messages[0].Content[0].Text)
	return &mcp.CreateMessageResult{Role: "assistant", Content: []mcp.Content{mcp.Text("Hi!")}, Model: "tour", StopReason: "endTurn"}, nil
}

func (g *guide) roots(context.Context) ([]mcp.Root, error) {
	g.note("asked for roots")
	return []mcp.Root{{URI: "file:///tour/one"}, {URI: "file:///tour/two"}}, nil
}

func (g *guide) log(_ context.Context, p *mcp.LogParams) {
	var data struct{ Msg string }
	if err := json.Unmarshal(p.Data, &data); err != nil {
		data.Msg = string(p.Data)
	}
	g.note("%s: %s", p.Level, data.Msg)
}
