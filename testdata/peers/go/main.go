// Command peers holds one conversation with the demo server through a Go SDK
// that others wrote: peers gosdk|mcpgo VERSION COMMAND ARGS…
// Or it is a server: peers serve.
//
// Every step prints one JSON line, {"step":…,"ok":…,"detail":…}, and the
// program exits with 1 if a step failed. peers_test.go judges the details.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// A peer is a client of one SDK, cut down to what the conversation needs.
type peer interface {
	connect(ctx context.Context, version string, command []string) (version2, server string, err error)
	list(ctx context.Context) (map[string][]string, error)
	call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (*result, error)
	read(ctx context.Context, uri string) (text, blob string, err error)
	prompt(ctx context.Context, name string, args map[string]string) (text, embedded string, err error)
	code(err error) int // the JSON-RPC code in err
	close() error
}

type result struct {
	text       string
	structured any
	failed     bool
}

type object = map[string]any

// asked is what the server asked the user, kept until the step prints it.
var asked = object{}

// elicit answers a form for any SDK; schema is what encodes to its JSON Schema.
func elicit(message string, schema any) map[string]any {
	var s struct{ Properties map[string]any }
	b, _ := json.Marshal(schema)
	_ = json.Unmarshal(b, &s)
	fields := []string{}
	for name := range s.Properties {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	asked["message"], asked["fields"] = message, fields
	return map[string]any{"name": "Ada", "agree": true}
}

func sample(prompt string) string { return "model heard: " + prompt }

var roots = [][2]string{{"file:///peer/one", "one"}, {"file:///peer/two", ""}}

var failed bool

func step(name string, run func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	line := object{"step": name, "ok": true}
	detail, err := run(ctx)
	if line["detail"] = detail; err != nil {
		failed, line["ok"], line["detail"] = true, false, err.Error()
	}
	b, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", b)
}

func main() {
	if os.Args[1] == "serve" {
		if err := serve(); err != nil {
			panic(err)
		}
		return
	}
	peers := map[string]peer{"gosdk": &goSDK{}, "mcpgo": &mcpGo{}}
	p := peers[os.Args[1]]
	// text calls a tool and keeps what it says.
	text := func(ctx context.Context, tool string, args object) (string, error) {
		r, err := p.call(ctx, tool, args, nil)
		if err != nil {
			return "", fmt.Errorf("%s: %w", tool, err)
		}
		return r.text, nil
	}

	step("connect", func(context.Context) (any, error) {
		version, server, err := p.connect(context.Background(), os.Args[2], os.Args[3:])
		return object{"version": version, "server": server}, err
	})
	step("list", func(ctx context.Context) (any, error) { return p.list(ctx) })
	step("call", func(ctx context.Context) (any, error) {
		echo, err := text(ctx, "echo", object{"text": "Grüße <b>&</b> 世界 \u2028"})
		sum, err2 := p.call(ctx, "add", object{"a": 2, "b": 40}, nil)
		fail, err3 := p.call(ctx, "fail", object{}, nil)
		_, panicked := p.call(ctx, "panic", object{}, nil)
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, err
		}
		return object{"echo": echo, "sum": sum.text, "structured": sum.structured, "failed": fail.failed, "panic": p.code(panicked)}, nil
	})
	step("read", func(ctx context.Context) (any, error) {
		readme, _, err := p.read(ctx, "demo://readme")
		_, logo, err2 := p.read(ctx, "demo://logo")
		user, _, err3 := p.read(ctx, "demo://users/42/profile")
		_, _, missing := p.read(ctx, "demo://no/such")
		return object{"readme": readme, "logo": fmt.Sprintf("%.16x", logo), "user": user, "missing": p.code(missing)}, errors.Join(err, err2, err3)
	})
	step("prompt", func(ctx context.Context) (any, error) {
		greet, _, err := p.prompt(ctx, "greet", map[string]string{"name": "Ada", "style": "formal"})
		_, embedded, err2 := p.prompt(ctx, "review", map[string]string{})
		return object{"greet": greet, "embedded": embedded}, errors.Join(err, err2)
	})
	step("progress", func(ctx context.Context) (any, error) {
		seen := make(chan float64, 100)
		r, err := p.call(ctx, "countdown", object{"from": 3, "delayMs": 30}, func(f float64) { seen <- f })
		if err != nil {
			return nil, err
		}
		values := []float64{}
		for more := true; more; {
			select {
			case f := <-seen:
				values = append(values, f)
			case <-time.After(100 * time.Millisecond): // callbacks may trail the answer
				more = false
			}
		}
		return object{"seen": values, "text": r.text}, nil
	})
	step("cancel", func(ctx context.Context) (any, error) {
		short, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		defer cancel()
		outcome := "cancelled"
		if _, err := p.call(short, "wait", object{}, nil); err == nil {
			outcome = "answered"
		}
		after, err := text(ctx, "echo", object{"text": "still here"})
		return object{"outcome": outcome, "after": after}, err
	})
	step("elicit", func(ctx context.Context) (any, error) {
		said, err := text(ctx, "ask", object{"question": "Who?"})
		asked["text"] = said
		return asked, err
	})
	step("sample", func(ctx context.Context) (any, error) {
		said, err := text(ctx, "sample", object{"prompt": "say hi"})
		return object{"text": said}, err
	})
	step("roots", func(ctx context.Context) (any, error) {
		said, err := text(ctx, "roots", object{})
		return object{"text": said}, err
	})
	step("close", func(context.Context) (any, error) { return nil, p.close() })
	if failed {
		os.Exit(1)
	}
}
