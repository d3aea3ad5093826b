package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpkit/mcp"
)

// watching says how long listen and log go on.
type watching struct {
	limit time.Duration       // 0 is without end
	count int                 // how many things to print at most; 0 is without end
	tool  string              // listen calls it once it listens
	heard chan *mcp.LogParams // nil for all verbs but log
}

func (w *watching) flags(fs *flag.FlagSet) {
	fs.DurationVar(&w.limit, "for", 0, "")
	fs.IntVar(&w.count, "n", 0, "")
	if fs.Name() == "listen" {
		fs.StringVar(&w.tool, "call", "", "")
	} else {
		w.heard = make(chan *mcp.LogParams)
	}
}

// check refuses what flags cannot tell from their absence.
func (w *watching) check(fs *flag.FlagSet) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if f.Name == "for" && w.limit <= 0 || f.Name == "n" && w.count <= 0 {
			err = &usageError{fmt.Sprintf("%s: -%s must be more than 0", fs.Name(), f.Name)}
		}
	})
	return err
}

// until returns a context that ends when the time is over.
func (v *visit) until() (context.Context, context.CancelFunc) {
	if v.limit == 0 {
		return context.WithCancel(v.ctx)
	}
	return context.WithTimeout(v.ctx, v.limit)
}

// over is how watching ends when its time is over, or the user ends it: well,
// unless a number was to be reached.
func (v *visit) over(n int, what string) error {
	if v.count == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d %s", v.name, n, v.count, what)
}

// gone is how watching ends when the server is no longer there; err is nil if
// it ended in order, as far as one can see.
func (v *visit) gone(n int, what string, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(v.err, "The server has ended the connection.")
	return v.over(n, what)
}

// listen prints what changes on the server. What the server does not tell of
// is said; it is an error if nothing is left.
func (v *visit) listen() error {
	filter, err := v.filter()
	if err != nil {
		return err
	}
	sub, err := v.cs.Listen(v.ctx, filter)
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := v.compare(filter, sub.Honored); err != nil {
		return err
	}
	if v.tool != "" {
		if _, err := mcp.CallTool[[]mcp.Content](v.ctx, v.cs, v.tool, nil); err != nil {
			return err
		}
	}
	ctx, stop := v.until()
	defer stop()
	n := 0
	for change, err := range sub.Events(ctx) {
		switch {
		case err != nil && ctx.Err() != nil:
			return v.over(n, "changes")
		case errors.Is(err, mcp.ErrClosed):
			return v.gone(n, "changes", cmp.Or(v.cs.Wait(), errors.Unwrap(err)))
		case err != nil:
			return err
		}
		if err := v.printChange(change); err != nil {
			return err
		}
		if n++; n == v.count {
			return nil
		}
	}
	fmt.Fprintln(v.err, "The server has ended the subscription.")
	return v.over(n, "changes")
}

// filter is what the operands of listen ask for: all lists without any.
func (v *visit) filter() (f mcp.SubscriptionFilter, err error) {
	if len(v.operands) == 0 {
		return mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}, nil
	}
	for _, operand := range v.operands {
		switch operand {
		case "tools":
			f.ToolsListChanged = true
		case "prompts":
			f.PromptsListChanged = true
		case "resources":
			f.ResourcesListChanged = true
		default:
			if strings.Index(operand, ":") < 1 {
				return f, &usageError{fmt.Sprintf("listen: %q is not tools, prompts, resources, or a URI", operand)}
			}
			f.ResourceSubscriptions = append(f.ResourceSubscriptions, operand)
		}
	}
	return f, nil
}

// compare says what of a subscription the server does not do.
func (v *visit) compare(asked, honoured mcp.SubscriptionFilter) error {
	left := 0
	count := func(asked, honoured bool, what string) {
		switch {
		case honoured:
			left++
		case asked:
			fmt.Fprintf(v.err, "The server does not tell of changes of %s.\n", what)
		}
	}
	count(asked.ToolsListChanged, honoured.ToolsListChanged, "tools")
	count(asked.PromptsListChanged, honoured.PromptsListChanged, "prompts")
	count(asked.ResourcesListChanged, honoured.ResourcesListChanged, "resources")
	for _, uri := range asked.ResourceSubscriptions {
		count(true, slices.Contains(honoured.ResourceSubscriptions, uri), uri)
	}
	if left == 0 {
		return errors.New("listen: there is nothing to listen to")
	}
	return nil
}

// changed are the notifications of changes, for people.
var changed = map[string]string{
	"notifications/tools/list_changed":     "tools have changed",
	"notifications/prompts/list_changed":   "prompts have changed",
	"notifications/resources/list_changed": "resources have changed",
}

func (v *visit) printChange(c mcp.Change) error {
	if v.json {
		return v.printJSON(struct {
			Method string `json:"method"`
			URI    string `json:"uri,omitempty"`
		}{c.Method, c.URI})
	}
	text, ok := changed[c.Method]
	if !ok {
		text = c.URI + " has changed"
	}
	_, err := fmt.Fprintln(v.out, text)
	return err
}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// log prints log messages: those of a tool until it has answered, or those
// that come by themselves, which no server of 2026-07-28 sends
// (2026-07-28 server/utilities/logging).
func (v *visit) log() error {
	level := v.operands[0]
	v.operands = v.operands[1:]
	if !slices.Contains(levels, level) {
		return &usageError{fmt.Sprintf("log: the level %q is not one of %s", level, strings.Join(levels, ", "))}
	}
	if len(v.operands) == 0 && v.cs.Server().ProtocolVersion == mcp.Version20260728 {
		return fmt.Errorf("log: at %s messages belong to a call: name a tool, or an older --version", mcp.Version20260728)
	}
	if err := v.cs.SetLogLevel(v.ctx, mcp.LoggingLevel(level)); err != nil {
		return err
	}
	answered := make(chan error, 1)
	ctx, stop := v.until()
	defer stop()
	if len(v.operands) > 0 {
		args, err := v.arguments()
		if err != nil {
			return err
		}
		go func() { answered <- v.callQuietly(ctx, args) }()
	}
	return v.printLogs(ctx, answered)
}

// callQuietly calls a tool of whose result nothing counts but that it failed.
func (v *visit) callQuietly(ctx context.Context, args any) error {
	_, err := mcp.CallTool[[]mcp.Content](ctx, v.cs, v.operands[0], args)
	return err
}

// printLogs prints log messages until there are enough of them.
func (v *visit) printLogs(ctx context.Context, answered <-chan error) (failed error) {
	gone := make(chan error, 1)
	go func() { gone <- v.cs.Wait() }()
	var quiet <-chan time.Time // ends when no more can be on the way
	for n := 0; ; {
		select {
		case p := <-v.heard:
			if err := v.printLog(p); err != nil {
				return err
			}
			if n++; n == v.count {
				return nil
			}
			if quiet != nil {
				quiet = time.After(settleTime)
			}
		case failed = <-answered:
			if failed != nil || v.count == 0 && v.limit == 0 {
				quiet = time.After(settleTime)
			}
		case <-quiet:
			return failed
		case <-ctx.Done():
			return v.over(n, "messages")
		case err := <-gone:
			return v.gone(n, "messages", err)
		}
	}
}

func (v *visit) printLog(p *mcp.LogParams) error {
	if v.json {
		return v.printJSON(p)
	}
	printLog(v.out, "", p)
	return nil
}
