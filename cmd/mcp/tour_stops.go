package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mcpkit/mcp"
)

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

// pagination takes the pages of a list by hand, which Tools does by itself.
func (g *guide) pagination(ctx context.Context) (string, error) {
	var byHand []string
	for p := new(mcp.ListParams); ; {
		var page mcp.ListToolsResult
		if err := g.cs.Call(ctx, "tools/list", p, &page); err != nil {
			return "", err
		}
		for _, t := range page.Tools {
			byHand = append(byHand, t.Name)
		}
		if p.Cursor = page.NextCursor; p.Cursor == nil {
			break
		}
		if len(page.Tools) != tourPage {
			return "", fmt.Errorf("a page of %d tools that is not the last", len(page.Tools))
		}
	}
	all, err := g.tools(ctx)
	if err != nil || all != strings.Join(byHand, ", ") {
		return "", fmt.Errorf("page by page: %q; all: %s, %v", byHand, all, err)
	}
	invented := "page 2, please"
	refusal, err := answered(g.cs.Call(ctx, "tools/list", &mcp.ListParams{Cursor: &invented}, nil))
	return fmt.Sprintf("pages of %d, and the same tools; an invented cursor: %s", tourPage, refusal), err
}

// answered turns the server's own errors into something to see.
func answered(err error) (string, error) {
	var e *mcp.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d: %s", e.Code, e.Message), nil
	}
	return "", err
}

// together are the questions that come at the same time, in any order.
const together = "do you like?\""

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
		asked := g.questions()
		if len(asked) == 2 && strings.HasSuffix(asked[0], together) {
			slices.Sort(asked)
		}
		if asked != nil {
			text = strings.Join(asked, ": ") + ": " + text
		}
		return strings.ReplaceAll(text, "\n", " "), nil
	}
}

func (g *guide) add(ctx context.Context) (string, error) {
	r, err := mcp.CallTool[addResult](ctx, g.cs, "add", addArgs{2, 40})
	return fmt.Sprintf("2 + 40 = %v", r.Sum), err
}

func (g *guide) primes(ctx context.Context) (string, error) {
	r, err := mcp.CallTool[[]int](ctx, g.cs, "primes", primesArgs{Below: 10})
	return fmt.Sprint(r), err
}

func (g *guide) content(ctx context.Context) (string, error) {
	blocks, err := mcp.CallTool[[]mcp.Content](ctx, g.cs, "content", nil)
	var types []string
	for _, c := range blocks {
		types = append(types, c.Type)
	}
	return strings.Join(types, ", "), err
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
			kind, _, _ := strings.Cut(c.MIMEType, ";") // without a charset
			all = append(all, kind+": "+what)
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
	var all []*mcp.Completion
	for _, p := range []*mcp.CompleteParams{
		{Ref: mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteArgument{Name: "style", Value: "fr"}},
		{Ref: mcp.CompleteReference{Type: "ref/prompt", Name: "translate"}, Argument: mcp.CompleteArgument{Name: "dialect", Value: "S"},
			Context: &mcp.CompleteContext{Arguments: map[string]string{"language": "German"}}},
		{Ref: mcp.CompleteReference{Type: "ref/resource", URI: profileTemplate}, Argument: mcp.CompleteArgument{Name: "id"}},
	} {
		r, err := g.cs.Complete(ctx, p)
		if err != nil {
			return answered(err)
		}
		all = append(all, &r.Completion)
	}
	if all[2].Total == nil || !all[2].HasMore {
		return "", fmt.Errorf("nothing is said of the ids that were left out: %+v", all[2])
	}
	return fmt.Sprintf("fr: %s; with German before: %s; of all ids: %d of %d", strings.Join(all[0].Values, ", "),
		strings.Join(all[1].Values, ", "), len(all[2].Values), *all[2].Total), nil
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
	// That is handled beside the next request.
	for {
		requests, err := mcp.CallTool[map[string]int](ctx, g.cs, "requests", nil)
		if err != nil || requests["(cancelled)"] == 1 {
			return "wait was given up, the server heard of it and still answers", err
		}
	}
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
	sub, err := g.cs.Listen(ctx, mcp.SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{"demo://readme"},
	})
	if err != nil {
		return "", err
	}
	defer sub.Close()
	for _, tool := range []string{"bonus", "touch"} {
		if _, err := g.cs.CallTool(ctx, tool, nil); err != nil {
			return "", err
		}
	}
	var seen []string
	for change, err := range sub.Events(ctx) {
		if err != nil {
			return "", fmt.Errorf("after %q: %w", seen, err)
		}
		list := strings.TrimSuffix(strings.TrimPrefix(change.Method, "notifications/"), "/list_changed")
		if seen = append(seen, cmp.Or(change.URI, list)); len(seen) == 4 {
			break
		}
	}
	slices.SortFunc(seen, func(a, b string) int { // lists first
		return cmp.Or(strings.Count(a, ":")-strings.Count(b, ":"), strings.Compare(a, b))
	})
	if err := sub.Close(); err != nil {
		return "", err
	}
	if _, err := g.cs.CallTool(ctx, "bonus", bonusArgs{false}); err != nil {
		return "", err
	}
	for change, err := range sub.Events(ctx) {
		return "", fmt.Errorf("told of %+v, %v after the end", change, err)
	}
	return strings.Join(seen, ", ") + "; none after the end", nil
}

func (g *guide) reverse(ctx context.Context) (string, error) {
	var r echoArgs
	err := g.cs.Call(ctx, "demo/reverse", echoArgs{"Ada"}, &r)
	return r.Text, err
}

// cache asks for a list twice, and the server how often it was asked.
func (g *guide) cache(ctx context.Context) (string, error) {
	var asked [2]int
	for i := range asked {
		if _, err := g.tools(ctx); err != nil {
			return "", err
		}
		requests, err := mcp.CallTool[map[string]int](ctx, g.cs, "requests", nil)
		if err != nil {
			return "", err
		}
		asked[i] = requests["tools/list"]
	}
	if asked[0] == asked[1] {
		return "the tools were not asked for again", nil
	}
	return "the tools were asked for again: the server may not say how long they are good for", nil
}

func (g *guide) middleware(context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.sent["tools/call"] || !g.heard["sampling/createMessage"] {
		return "", fmt.Errorf("sent %v, heard %v", g.sent, g.heard)
	}
	return "tools/call went out, sampling/createMessage came in", nil
}

// known connects once more, by what is stored of the server, and as a client
// that can do nothing.
func (g *guide) known(ctx context.Context) (got string, err error) {
	var known mcp.ServerInfo
	stored, err := json.Marshal(g.cs.Server())
	if err == nil {
		err = json.Unmarshal(stored, &known)
	}
	if err != nil {
		return "", err
	}
	before := map[string]int{}
	if !g.fresh {
		if before, err = mcp.CallTool[map[string]int](ctx, g.cs, "requests", nil); err != nil {
			return "", err
		}
	}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, nil).ConnectKnown(ctx, g.demo(), &known)
	if err != nil {
		return "", err
	}
	defer cs.Close()
	requests, err := mcp.CallTool[map[string]int](ctx, cs, "requests", nil)
	if err != nil || requests["server/discover"] > before["server/discover"] {
		return "", fmt.Errorf("the server was asked: %v, %v", requests, err)
	}
	list, err := names(cs.Tools(ctx), func(t *mcp.Tool) string { return t.Name })
	if err != nil || strings.Contains(list, "pay") {
		return "", fmt.Errorf("listed: %s, %v", list, err)
	}
	_, err = cs.CallTool(ctx, "pay", nil)
	refusal, err := answered(err)
	return "not asked what it speaks; pay is hidden from who opens no pages: " + refusal, err
}

// refusal wants prompts of a server that has none.
func (g *guide) refusal(ctx context.Context) (string, error) {
	s := mcp.NewServer(mcp.Implementation{Name: "bare", Version: version}, nil)
	var asked atomic.Bool
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(ctx context.Context, req *mcp.Request) (any, error) {
			if req.Method == "prompts/get" {
				asked.Store(true)
			}
			return next(ctx, req)
		}
	})
	client, server := mcp.InMemory()
	if _, err := s.Connect(ctx, server); err != nil {
		return "", err
	}
	versions := []string{g.version}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, &mcp.ClientOptions{Versions: versions}).Connect(ctx, client)
	if err != nil {
		return "", err
	}
	defer cs.Close()
	if _, err := cs.GetPrompt(ctx, "greet", nil); !errors.Is(err, errors.ErrUnsupported) || asked.Load() {
		return "", fmt.Errorf("not refused here, but %v", err)
	}
	_, err = cs.With(mcp.CallOptions{Insist: true}).GetPrompt(ctx, "greet", nil)
	refusal, err := answered(err)
	return "no prompts, nothing was sent; with Insist: " + refusal, err
}

// restart lets a server die.
func (g *guide) restart(ctx context.Context) (string, error) {
	cs, err := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, &mcp.ClientOptions{
		Versions: []string{g.version}, Restart: true,
	}).Connect(ctx, g.demo())
	if err != nil {
		return "", err
	}
	defer cs.Close()
	if _, err := cs.CallTool(ctx, "die", nil); err == nil || ctx.Err() != nil {
		return "", fmt.Errorf("die ended with %v", err)
	}
	text, err := mcp.CallTool[string](ctx, cs, "echo", echoArgs{"is there again"})
	return "the server died, and " + text, err
}

// otherEra is a client of the other era, of the same server.
func (g *guide) otherEra(ctx context.Context) (string, error) {
	other := mcp.Version20260728
	if g.modern {
		other = mcp.Version20250618
	}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "tour", Version: version}, &mcp.ClientOptions{Versions: []string{other}}).
		Connect(ctx, &mcp.HTTP{URL: g.url + "/mcp"})
	if err != nil {
		return "", err
	}
	defer cs.Close()
	var said [2]string
	for i, cs := range []*mcp.ClientSession{cs, g.cs} {
		if said[i], err = mcp.CallTool[string](ctx, cs, "echo", echoArgs{"there is room for all"}); err != nil {
			return "", err
		}
	}
	if said[0] != said[1] {
		return "", fmt.Errorf("one got %q, the other %q", said[0], said[1])
	}
	return "at the same time, from the same server: " + said[0], nil
}

// close ends the session, and with it the server.
func (g *guide) close(ctx context.Context) (string, error) {
	life, err := mcp.CallTool[lifeResult](ctx, g.cs, "lifespan", nil)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(life.Folder); err != nil {
		return "", err
	}
	var ran []string // nobody else looks at it: Close waits
	for _, name := range []string{"first", "second"} {
		g.cs.OnClose(func() { ran = append(ran, name) })
	}
	if err := errors.Join(g.cs.Close(), g.end()); err != nil {
		return "", err
	}
	if _, err := os.Stat(life.Folder); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the server's folder %s: %v", life.Folder, err)
	}
	if err := g.cs.Ping(ctx); !errors.Is(err, mcp.ErrClosed) {
		return "", fmt.Errorf("after the end: %v", err)
	}
	return "clean-up: " + strings.Join(ran, ", ") + "; the server's folder is gone; nothing goes out any more", nil
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

func (g *guide) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if p.Mode == "url" {
		g.note("asked to open %s", p.URL)
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	g.note("asked %q", p.Message)
	content := "{}"
	switch p.Message {
	case "Who are you?":
		content = `{"name":"Ada","agree":true}`
	case "Which colour do you like?":
		content = `{"colour":"blue"}`
	case "Which animal do you like?":
		content = `{"animal":"cat"}`
	}
	if strings.HasSuffix(p.Message, "do you like?") {
		select { // not before both were asked
		case g.both <- struct{}{}:
		case <-g.both:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(content)}, nil
}

// sample is a model that can do sums, with a tool.
func (g *guide) sample(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	r := &mcp.CreateMessageResult{Role: "assistant", Model: "tour", StopReason: "endTurn"}
	last := p.Messages[len(p.Messages)-1].Content[0]
	switch {
	case last.Type == "tool_result":
		g.note("told the model %q", texts(last.Content))
		r.Content = []mcp.Content{mcp.Text("It is " + texts(last.Content) + ".")}
		return r, nil
	case len(p.Tools) > 0:
		r.Content = []mcp.Content{{Type: "tool_use", ID: "sum-1", Name: p.Tools[0].Name, Input: json.RawMessage(`{"a":20,"b":22}`)}}
		r.StopReason = "toolUse"
	default:
		r.Content = []mcp.Content{mcp.Text("Hi!")}
	}
	g.note("asked the model %q", last.Text)
	return r, nil
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
