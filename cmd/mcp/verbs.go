package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpkit/mcp"
)

// A verb is a command that does one thing with a server.
type verb struct {
	operands string // for people
	min, max int    // how many there may be
	do       func(v *visit) error
}

const many = 1 << 20

var verbs = map[string]verb{
	"tools":     {"", 0, 0, (*visit).tools},
	"call":      {"NAME [JSON | KEY=VALUE …]", 1, many, (*visit).call},
	"resources": {"", 0, 0, (*visit).resources},
	"templates": {"", 0, 0, (*visit).templates},
	"read":      {"URI", 1, 1, (*visit).read},
	"prompts":   {"", 0, 0, (*visit).prompts},
	"get":       {"NAME [KEY=VALUE …]", 1, many, (*visit).get},
	"complete":  {"PROMPT or TEMPLATE, and ARGUMENT=START", 2, many, (*visit).complete},
	"listen":    {"[tools] [prompts] [resources] [URI …]", 0, many, (*visit).listen},
	"log":       {"LEVEL [TOOL [JSON | KEY=VALUE …]]", 1, many, (*visit).log},
	"ping":      {"", 0, 0, (*visit).ping},
	"discover":  {"", 0, 0, (*visit).discover},
}

var versions = []string{mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125, mcp.Version20260728}

// A visit is one run of a verb.
type visit struct {
	name     string
	operands []string
	target   // the server

	versions []string // nil for all
	timeout  time.Duration
	json     bool
	trace    bool
	watching // of listen and log

	ctx      context.Context
	cs       *mcp.ClientSession
	in       io.Reader
	out, err io.Writer
}

// parse reads the command line of a verb, in which flags and operands may be
// mixed. It returns flag.ErrHelp when help was asked for.
func (v *visit) parse(args []string) error {
	args, command := words(args)
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints the error
	v.target.flags(fs)
	fs.BoolVar(&v.json, "json", false, "")
	fs.BoolVar(&v.trace, "trace", false, "")
	fs.DurationVar(&v.timeout, "timeout", time.Minute, "")
	fs.Func("version", "", func(s string) error {
		if !slices.Contains(versions, s) {
			return fmt.Errorf("not one of %s", strings.Join(versions, ", "))
		}
		v.versions = []string{s}
		return nil
	})
	if verb := v.name; verb == "listen" || verb == "log" {
		v.watching.flags(fs)
	}
	operands, err := parseMixed(fs, args)
	if err == nil {
		v.operands, err = v.target.take(v.name, operands, command)
	}
	if err != nil {
		return err
	}
	form := verbs[v.name]
	switch {
	case len(v.operands) < form.min:
		return &usageError{v.name + " needs " + form.operands}
	case len(v.operands) > form.max && len(command) == 0:
		return &usageError{fmt.Sprintf("%s: what is %q? The server's command comes after --", v.name, v.operands[form.max])}
	case len(v.operands) > form.max:
		return &usageError{fmt.Sprintf("%s: what is %q?", v.name, v.operands[form.max])}
	case v.timeout <= 0:
		return &usageError{v.name + ": the timeout must be more than 0"}
	}
	return v.watching.check(fs)
}

// run connects to the server, does what the verb does, and leaves it: one that
// is a child process ends then.
func (v *visit) run(ctx context.Context) error {
	user := &user{in: v.in, out: v.err}
	logged := make(chan struct{}, 1)
	client := mcp.NewClient(mcp.Implementation{Name: "mcp", Version: version}, &mcp.ClientOptions{
		Versions: v.versions, Timeout: v.timeout, ProbeTimeout: min(v.timeout, 5*time.Second),
		Elicit: user.elicit, Capabilities: user.capabilities(), Notify: user.hear,
		Log: func(ctx context.Context, p *mcp.LogParams) {
			if v.heard != nil { // the messages are what it is about
				select {
				case v.heard <- p:
				case <-ctx.Done():
				}
				return
			}
			printLog(v.err, "log: ", p)
			select {
			case logged <- struct{}{}:
			default:
			}
		},
	})
	var tr *tracer
	hide(v.err, v.secrets())
	if v.trace {
		tr = newTracer(v.err, false)
	}
	cs, err := client.Connect(ctx, v.transport(tr, func(line string) {
		if v.stderr {
			fmt.Fprintln(v.err, line)
		}
	}, v.err))
	if err == nil {
		// How the server exits is no matter once it has answered.
		defer cs.Close()
		if cs.Server().ProtocolVersion == mcp.Version20260728 && v.name != "log" {
			// There the server sends no log messages unless it is asked to.
			err = cs.SetLogLevel(ctx, "info")
		}
	}
	if err == nil {
		v.ctx, v.cs = ctx, cs
		err = verbs[v.name].do(v)
		if verbs[v.name].min > 0 {
			settle(logged)
		}
	}
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// settleTime is how long after an answer messages that came before it are
// waited for.
const settleTime = 50 * time.Millisecond

// settle waits until no more log messages come: those that arrive before an
// answer are handled beside it, and closing drops what waits.
func settle(logged <-chan struct{}) {
	for {
		select {
		case <-logged:
		case <-time.After(settleTime):
			return
		}
	}
}

// request sends a request and prints the result: as it came with --json,
// otherwise decoded into result and shown.
func (v *visit) request(method string, params, result any, show func()) error {
	cs := v.cs.With(mcp.CallOptions{Progress: func(p mcp.ProgressParams) { printProgress(v.err, p) }})
	if !v.json {
		if err := cs.Call(v.ctx, method, params, result); err != nil {
			return err
		}
		show()
		return nil
	}
	var raw json.RawMessage
	if err := cs.Call(v.ctx, method, params, &raw); err != nil {
		return err
	}
	fmt.Fprintf(v.out, "%s\n", raw)
	return json.Unmarshal(raw, result)
}

// pages prints the pages of a list as they come, one a line.
func (v *visit) pages(method string) error {
	seen := map[string]bool{}
	for p := new(mcp.ListParams); ; {
		var raw json.RawMessage
		if err := v.cs.Call(v.ctx, method, p, &raw); err != nil {
			return err
		}
		fmt.Fprintf(v.out, "%s\n", raw)
		var page struct{ NextCursor *string }
		if err := json.Unmarshal(raw, &page); err != nil || page.NextCursor == nil {
			return err
		}
		if p.Cursor = page.NextCursor; seen[*p.Cursor] {
			return fmt.Errorf("%s: the server repeats the cursor %q", method, *p.Cursor)
		}
		seen[*p.Cursor] = true
	}
}

// list prints a list that the server has.
func list[T any](v *visit, method string, all iter.Seq2[*T, error], show func(io.Writer, *T)) error {
	if v.json {
		return v.pages(method)
	}
	n := 0
	for entry, err := range all {
		if err != nil {
			return err
		}
		show(v.out, entry)
		n++
	}
	if n == 0 {
		fmt.Fprintf(v.err, "The server has no %s.\n", v.name)
	}
	return nil
}

func (v *visit) tools() error {
	return list(v, "tools/list", v.cs.Tools(v.ctx), printTool)
}

func (v *visit) resources() error {
	return list(v, "resources/list", v.cs.Resources(v.ctx), printResource)
}

func (v *visit) templates() error {
	return list(v, "resources/templates/list", v.cs.ResourceTemplates(v.ctx), printTemplate)
}

func (v *visit) prompts() error {
	return list(v, "prompts/list", v.cs.Prompts(v.ctx), printPrompt)
}

func (v *visit) call() error {
	args, err := v.arguments()
	if err != nil {
		return err
	}
	var r mcp.CallToolResult
	err = v.request("tools/call", &mcp.CallToolParams{Name: v.operands[0], Arguments: args}, &r, func() {
		if !r.IsError {
			printToolResult(v.out, &r)
		}
	})
	if err == nil && r.IsError {
		err = &mcp.ToolError{Result: &r}
	}
	return err
}

// arguments makes the arguments of call: one JSON object, or members that are
// JSON where they can be and the tool does not want a string.
func (v *visit) arguments() (json.RawMessage, error) {
	given := v.operands[1:]
	if len(given) == 1 && strings.HasPrefix(strings.TrimSpace(given[0]), "{") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(given[0]), &object); err != nil {
			return nil, &usageError{v.name + ": the arguments are not JSON: " + err.Error()}
		}
		return json.RawMessage(given[0]), nil
	}
	pairs, err := keyValues(v.name, given)
	if err != nil || len(pairs) == 0 {
		return nil, err
	}
	var texts map[string]bool // arguments that are strings, once known
	members := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		isText := !json.Valid([]byte(value))
		if !isText {
			if texts == nil {
				if texts, err = v.textArguments(v.operands[0]); err != nil {
					return nil, err
				}
			}
			isText = texts[key]
		}
		members[key] = json.RawMessage(value)
		if isText {
			if members[key], err = json.Marshal(value); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(members)
}

// textArguments says which arguments of a tool are strings.
func (v *visit) textArguments(tool string) (map[string]bool, error) {
	texts := map[string]bool{}
	for t, err := range v.cs.Tools(v.ctx) {
		if err != nil {
			return nil, err
		}
		if t.Name == tool {
			for name, schema := range properties(t.InputSchema) {
				texts[name] = typeOf(schema) == "string"
			}
			break
		}
	}
	return texts, nil
}

// keyValues splits operands of the form KEY=VALUE.
func keyValues(name string, operands []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, operand := range operands {
		key, value, ok := strings.Cut(operand, "=")
		if !ok || key == "" {
			return nil, &usageError{fmt.Sprintf("%s: %q is not KEY=VALUE", name, operand)}
		}
		if _, twice := pairs[key]; twice {
			return nil, &usageError{fmt.Sprintf("%s: %s is given twice", name, key)}
		}
		pairs[key] = value
	}
	return pairs, nil
}

// complete asks how an argument of a prompt or template may go on. What else
// is given has been filled in already.
func (v *visit) complete() error {
	p := mcp.CompleteParams{Ref: reference(v.operands[0])}
	pairs, err := keyValues(v.name, v.operands[1:])
	if err != nil {
		return err
	}
	p.Argument.Name, p.Argument.Value, _ = strings.Cut(v.operands[1], "=")
	if delete(pairs, p.Argument.Name); len(pairs) > 0 {
		p.Context = &mcp.CompleteContext{Arguments: pairs}
	}
	var r mcp.CompleteResult
	return v.request("completion/complete", &p, &r, func() {
		c := &r.Completion
		for _, value := range c.Values {
			fmt.Fprintln(v.out, value)
		}
		switch {
		case c.Total != nil && *c.Total > int64(len(c.Values)):
			fmt.Fprintf(v.err, "These are %d of %d.\n", len(c.Values), *c.Total)
		case c.HasMore:
			fmt.Fprintln(v.err, "There are more.")
		case len(c.Values) == 0:
			fmt.Fprintln(v.err, "The server proposes nothing.")
		}
	})
}

// reference takes what looks like a URI template for one, and anything else
// for the name of a prompt.
func reference(operand string) mcp.CompleteReference {
	if strings.Contains(operand, "{") || strings.Contains(operand, "://") {
		return mcp.CompleteReference{Type: "ref/resource", URI: operand}
	}
	return mcp.CompleteReference{Type: "ref/prompt", Name: operand}
}

func (v *visit) read() error {
	var r mcp.ReadResourceResult
	return v.request("resources/read", &mcp.ReadResourceParams{URI: v.operands[0]}, &r, func() {
		for _, c := range r.Contents {
			printContents(v.out, &c)
		}
	})
}

func (v *visit) get() error {
	args, err := keyValues(v.name, v.operands[1:])
	if err != nil {
		return err
	}
	var r mcp.GetPromptResult
	return v.request("prompts/get", &mcp.GetPromptParams{Name: v.operands[0], Arguments: args}, &r, func() {
		for _, m := range r.Messages {
			fmt.Fprintf(v.out, "%s: ", m.Role)
			printContent(v.out, &m.Content)
		}
	})
}

// ping has nothing to show but that there was an answer; 2026-07-28 has no
// ping, so any answer will do there.
func (v *visit) ping() error {
	start := time.Now()
	if err := v.cs.Ping(v.ctx); err != nil {
		return err
	}
	took := time.Since(start)
	s := v.cs.Server()
	if v.json {
		return v.printJSON(struct {
			ProtocolVersion string  `json:"protocolVersion"`
			Milliseconds    float64 `json:"milliseconds"`
		}{s.ProtocolVersion, float64(took.Microseconds()) / 1000})
	}
	fmt.Fprintf(v.out, "%s answered after %v, %s\n", s.Name, took.Round(time.Microsecond), s.ProtocolVersion)
	return nil
}

// discover shows what the server says of itself. Servers before 2026-07-28
// say it when they are connected, and only then.
func (v *visit) discover() error {
	s := v.cs.Server()
	switch {
	case !v.json:
		printServer(v.out, s)
		return nil
	case s.ProtocolVersion == mcp.Version20260728:
		return v.request("server/discover", nil, new(mcp.DiscoverResult), nil)
	}
	return v.printJSON(&mcp.InitializeResult{
		ProtocolVersion: s.ProtocolVersion, Capabilities: s.Capabilities, ServerInfo: s.Implementation, Instructions: s.Instructions,
	})
}

func (v *visit) printJSON(value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := b.WriteTo(v.out)
	return err
}
