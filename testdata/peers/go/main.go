// Command peers holds one conversation with a server of ours through a Go SDK
// that others wrote: peers gosdk|mcpgo demo|wide|nap|cut|lost
// VERSION (COMMAND ARGS… | URL); a URL that ends in /sse is for HTTP+SSE.
// Or it is a server: peers serve mcpgo|gosdk [-ping] [-stateless], over stdio,
// or over HTTP if the environment has a PORT. Or it signs in: peers oauth URL
// TOOL….
//
// Every step prints one JSON line, {"step":…,"ok":…,"detail":…}, and the
// program exits with 1 if a step failed. peers_test.go judges the details.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// A peer is a client of one SDK, cut down to what the conversation needs.
type peer interface {
	connect(ctx context.Context, version string, command []string) (version2, server string, err error)
	list(ctx context.Context) (map[string][]string, error)
	call(ctx context.Context, tool string, args map[string]any, progress func(float64)) (*result, error)
	read(ctx context.Context, uri string) (text, blob string, err error)
	prompt(ctx context.Context, name string, args map[string]string) (text, embedded string, err error)
	// page is one page of tools and the cursor of the next.
	page(ctx context.Context, cursor string) (names []string, next string, err error)
	// complete takes what was filled in before as pairs of name and value.
	complete(ctx context.Context, ref reference, argument, value string, filled ...string) ([]string, error)
	level(ctx context.Context, level string) error
	// listen asks for changes of lists or of one resource; end ends that.
	listen(ctx context.Context, uri string) (end func() error, err error)
	ping(ctx context.Context) error
	code(err error) int // the JSON-RPC code in err
	id() string         // of the session
	close() error
}

// A reference is a prompt or, with a URI, a template.
type reference struct{ name, uri string }

// heard gets what notices of the server say, once a step wants it.
var heard = make(chan notice, 1000)

type notice struct{ method, detail string }

// listenTo keeps the notices of the named kinds until each has come, or for a
// while; again repeats what brings them about, since these SDKs do not say when
// they have begun to listen.
func listenTo(again func() error, methods ...string) (map[string]string, error) {
	seen := map[string]string{}
	missing := func() bool {
		return slices.ContainsFunc(methods, func(m string) bool { _, ok := seen[m]; return !ok })
	}
	for range 30 {
		if !missing() {
			break
		}
		if err := again(); err != nil {
			return seen, err
		}
		for wait := time.After(100 * time.Millisecond); missing() && wait != nil; {
			select {
			case n := <-heard:
				seen[n.method] = n.detail
			case <-wait:
				wait = nil
			}
		}
	}
	return seen, nil
}

type result struct {
	text       string
	kinds      []string // of content
	structured any
	failed     bool
}

type object = map[string]any

// asked is what the server asked the user, kept until the step prints it.
var asked = object{}

// open says that the user has been sent to a page.
func open(message, url string) { asked["message"], asked["url"] = message, url }

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
	if !slices.Contains(fields, "name") {
		answer := object{}
		for _, name := range fields {
			answer[name] = "any " + name
		}
		return answer
	}
	asked["message"], asked["fields"] = message, fields
	return object{"name": "Ada", "agree": true}
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
		if err := servers[os.Args[2]](); err != nil {
			panic(err)
		}
		return
	}
	if os.Args[1] == "oauth" {
		if err := oauth(context.Background(), os.Args[2], os.Args[3:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	p := map[string]peer{"gosdk": &goSDK{}, "mcpgo": &mcpGo{}}[os.Args[1]]
	step("connect", func(context.Context) (any, error) {
		version, server, err := p.connect(context.Background(), os.Args[3], os.Args[4:])
		return object{"version": version, "server": server}, err
	})
	map[string]func(peer){"demo": demo, "wide": wide, "nap": nap, "cut": cut, "lost": lost}[os.Args[2]](p)
	step("close", func(context.Context) (any, error) { return nil, p.close() })
	if failed {
		os.Exit(1)
	}
}

// say calls a tool and returns what it says.
func say(ctx context.Context, p peer, tool string, args object) (string, error) {
	r, err := p.call(ctx, tool, args, nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	return r.text, nil
}

// demo is the conversation with mcp demo.
func demo(p peer) {
	step("list", func(ctx context.Context) (any, error) { return p.list(ctx) })
	step("call", func(ctx context.Context) (any, error) {
		echo, err := say(ctx, p, "echo", object{"text": "Grüße <b>&</b> 世界 \u2028"})
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
	running(p)
	asking(p)
	step("complete", func(ctx context.Context) (any, error) {
		style, err := p.complete(ctx, reference{name: "greet"}, "style", "f")
		template := reference{uri: "demo://users/{id}/profile"}
		id, err2 := p.complete(ctx, template, "id", "24")
		most, err3 := p.complete(ctx, template, "id", "")
		return object{"style": strings.Join(style, " "), "id": strings.Join(id, " "), "most": len(most)}, errors.Join(err, err2, err3)
	})
	step("log", func(ctx context.Context) (any, error) {
		if err := p.level(ctx, "warning"); err != nil {
			return nil, err
		}
		seen, err := listenTo(func() error {
			_, err := say(ctx, p, "log", object{"level": "info", "message": "too quiet"})
			_, err2 := say(ctx, p, "log", object{"level": "error", "message": "loud enough"})
			return errors.Join(err, err2)
		}, "notifications/message")
		return object{"seen": seen["notifications/message"]}, err
	})
	step("updates", func(ctx context.Context) (any, error) {
		end, err := p.listen(ctx, "demo://readme")
		if err != nil {
			return nil, err
		}
		seen, err := listenTo(func() error { _, err := say(ctx, p, "touch", object{}); return err }, "notifications/resources/updated")
		if err := errors.Join(err, end()); err != nil {
			return nil, err
		}
		after, err := say(ctx, p, "echo", object{"text": "still here"})
		return object{"seen": seen["notifications/resources/updated"], "after": after}, err
	})
	step("ping", func(ctx context.Context) (any, error) {
		if err := p.ping(ctx); err != nil {
			return p.code(err), nil
		}
		return "pong", nil
	})
}

// running has calls report progress and gives one up.
func running(p peer) {
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
		after, err := say(ctx, p, "echo", object{"text": "still here"})
		return object{"outcome": outcome, "after": after}, err
	})
}

// asking calls tools that ask back.
func asking(p peer) {
	step("elicit", func(ctx context.Context) (any, error) {
		said, err := say(ctx, p, "ask", object{"question": "Who?"})
		asked["text"] = said
		return asked, err
	})
	step("sample", func(ctx context.Context) (any, error) {
		said, err := say(ctx, p, "sample", object{"prompt": "say hi"})
		return object{"text": said}, err
	})
	step("roots", func(ctx context.Context) (any, error) {
		said, err := say(ctx, p, "roots", object{})
		return object{"text": said}, err
	})
}

// wide is the conversation with mcp demo when its lists have pages.
func wide(p peer) {
	step("pages", func(ctx context.Context) (any, error) {
		var first, tools []string
		n := 0
		for cursor, more := "", true; more; more = cursor != "" && n < 20 {
			names, next, err := p.page(ctx, cursor)
			if err != nil {
				return nil, err
			}
			if n++; n == 1 {
				first = names
			}
			tools, cursor = append(tools, names...), next
		}
		all, err := p.list(ctx)
		_, _, bad := p.page(ctx, "made up")
		return object{"first": strings.Join(first, " "), "several": n > 1 && len(first) == 4, "tools": tools,
			"resources": all["resources"], "prompts": all["prompts"], "bad": p.code(bad)}, err
	})
	step("structured", func(ctx context.Context) (any, error) {
		primes, err := p.call(ctx, "primes", object{"below": 8}, nil)
		requests, err2 := p.call(ctx, "requests", object{}, nil)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		return object{"primes": primes.structured, "text": primes.text, "requests": requests.structured}, nil
	})
	step("content", func(ctx context.Context) (any, error) {
		r, err := p.call(ctx, "content", object{}, nil)
		if err != nil {
			return nil, err
		}
		return r.kinds, nil
	})
	step("context", func(ctx context.Context) (any, error) {
		with, err := p.complete(ctx, reference{name: "translate"}, "dialect", "", "language", "German")
		without, err2 := p.complete(ctx, reference{name: "translate"}, "dialect", "")
		return object{"with": strings.Join(with, " "), "without": strings.Join(without, " ")}, errors.Join(err, err2)
	})
	step("changes", func(ctx context.Context) (any, error) {
		end, err := p.listen(ctx, "")
		if err != nil {
			return nil, err
		}
		seen, err := listenTo(func() error {
			_, err := say(ctx, p, "bonus", object{"have": false})
			_, err2 := say(ctx, p, "bonus", object{"have": true})
			return errors.Join(err, err2)
		}, "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed")
		if err := errors.Join(err, end()); err != nil {
			return nil, err
		}
		kinds := object{}
		for method := range seen {
			kinds[strings.Split(method, "/")[1]] = true
		}
		all, err := p.list(ctx)
		kinds["bonus"] = slices.Contains(all["tools"], "bonus-tool")
		return kinds, err
	})
	for _, s := range []struct {
		name, tool string
		args       object
	}{{"url", "pay", object{"amount": 7}}, {"once", "survey", object{}}, {"rounds", "book", object{}}, {"agent", "agent", object{"prompt": "add 2 and 40"}}} {
		step(s.name, func(ctx context.Context) (any, error) {
			said, err := say(ctx, p, s.tool, s.args)
			if err != nil { // the demo hides what this client cannot do
				said = err.Error()
			}
			asked["text"] = said
			return asked, nil
		})
	}
}

// nap is a call during which the server pings.
func nap(p peer) {
	step("nap", func(ctx context.Context) (any, error) {
		said, err := say(ctx, p, "nap", object{})
		return object{"text": said}, err
	})
}

// cut is a call whose stream breaks, one whose stream the server closes, and
// then the stream of the session.
func cut(p peer) {
	step("call", func(ctx context.Context) (any, error) {
		seen := make(chan float64, 100)
		r, err := p.call(ctx, "count", object{"to": 5}, func(f float64) { seen <- f })
		if err != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond) // callbacks may trail the answer
		values := []float64{}
		for len(seen) > 0 {
			values = append(values, <-seen)
		}
		return object{"seen": values, "text": r.text}, nil
	})
	step("poll", func(ctx context.Context) (any, error) {
		said, err := say(ctx, p, "poll", object{})
		return object{"text": said}, err
	})
	step("stream", func(ctx context.Context) (any, error) {
		_, err := p.listen(ctx, "peers://watched")
		if err != nil {
			return nil, err
		}
		times := 0
		for range 2 {
			if _, err := say(ctx, p, "touch", object{}); err != nil {
				return nil, err
			}
			select {
			case <-heard:
				times++
			case <-ctx.Done():
			}
		}
		return object{"times": times}, nil
	})
}

// lost is a session that ends before its client knows.
func lost(p peer) {
	step("lost", func(ctx context.Context) (any, error) {
		r, err := http.NewRequestWithContext(ctx, "DELETE", os.Args[4], nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Mcp-Session-Id", p.id())
		r.Header.Set("Mcp-Protocol-Version", os.Args[3])
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, err
		}
		w.Body.Close()
		said := "no error"
		if _, err := p.call(ctx, "count", object{"to": 1}, nil); err != nil {
			said = err.Error()
		}
		return object{"deleted": w.StatusCode, "call": said}, nil
	})
}
