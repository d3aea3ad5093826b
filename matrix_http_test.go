//go:build !mcp_nohttp

package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The roads of HTTP. 2026-07-28 is the same on those of Streamable HTTP, but
// for what is sent before a result.
var (
	_ = addRoad(httpRoad("http", nil))
	_ = addRoad(httpRoad("http stateless", &HTTPOptions{Stateless: true}))
	_ = addRoad(httpRoad("http json", &HTTPOptions{JSON: true}))
	_ = addRoad(road{"http+sse", everyRevision[:4], func(t *testing.T, fixture string, c *Client) (*ClientSession, error) {
		h := NewHTTPHandler(fixtures[fixture](), nil)
		return connectHTTP(t, h, h.SSE(), c)
	}})
)

func httpRoad(name string, opts *HTTPOptions) road {
	return road{name, everyRevision, func(t *testing.T, fixture string, c *Client) (*ClientSession, error) {
		h := NewHTTPHandler(fixtures[fixture](), opts)
		return connectHTTP(t, h, h, c)
	}}
}

// connectHTTP serves over a connection of loopback until the test ends.
func connectHTTP(t *testing.T, h *HTTPHandler, endpoint http.Handler, c *Client) (*ClientSession, error) {
	server := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		server.Close()
	})
	return c.Connect(t.Context(), &HTTP{URL: server.URL + "/mcp"})
}

const (
	streamable = "http, http stateless, http json"
	everyHTTP  = streamable + ", http+sse"
)

// Why a road of HTTP cannot do what others can.
const (
	noWords    = "the end of the stream is the cancellation, and has no words"
	noNotice   = "one JSON object has no room for anything before the result"
	noSession  = "without a session the server knows nothing of the client but what each request says"
	noWayBack  = "without a session there is no stream but the request's own, and no answer could find it"
	noQuestion = "before 2026-07-28 a question is a request of the server's, for which there is neither room in one JSON object nor, without a session, a way for its answer"
	noConn     = "there is no connection that could end: a lost session is opened anew, and one of 2026-07-28 is one request"
	noCancel   = "without a session no notification finds the request, which runs on"
)

// What the roads of HTTP cannot do, by design, and what a caller sees instead.
var _ = addLimits(
	limit{streamable, "modern", "a call given up", noWords, nil, `
waits: cancelled
ended: {"content":[{"type":"text","text":"context canceled"}]}
waits: cancelled
string: {"content":[{"type":"text","text":"text"}]}
`},
	limit{streamable, "modern", "a call that takes too long", noWords, nil, `
waits: too late
ended: {"content":[{"type":"text","text":"context canceled"}]}
waits: too late
ended: {"content":[{"type":"text","text":"context canceled"}]}
string: {"content":[{"type":"text","text":"text"}]}
`},
	limit{"http stateless", "legacy", "a call given up", noCancel, napGivenUp, `
naps: cancelled
string: {"content":[{"type":"text","text":"text"}]}
`},
	limit{"http stateless", "legacy", "a call that takes too long", noCancel, napTooLong, `
naps: too late
string: {"content":[{"type":"text","text":"text"}]}
`},
	limit{streamable, "both", "the server leaves with a call running", noConn, serverLeaves, `
leaves: {"content":[{"type":"text","text":"unheard"}]}
string: {"content":[{"type":"text","text":"text"}]}
naps: null
note: null
close: null
`},
	limit{"http, http json", "both", "the server ends what is listened to", noConn, serverEndsListening, `
leaves: null
events: notifications/tools/list_changed
`},
	limit{"http stateless", "modern", "the server ends what is listened to", noConn, serverEndsListening, `
leaves: null
events: notifications/tools/list_changed
`},
	limit{"http stateless", "legacy", "the server ends what is listened to", noWayBack, cannotListen, `
listen: unsupported
`},
	limit{"http stateless", "legacy", "changes", noWayBack, cannotListen, `
listen: unsupported
`},
	limit{"http json", "both", "progress", noNotice, nil, `
steps: {"content":[{"type":"text","text":"done"}]}
steps: {"content":[{"type":"text","text":"done"}]}
who: {"content":[{"type":"text","text":"visitor 2.0 1 elicitation=false sampling=false roots=false"}]}
`},
	limit{"http json", "both", "log messages", noNotice, nil, `
warning: null
speaks: {"content":[{"type":"text","text":"said"}]}
debug: null
speaks: {"content":[{"type":"text","text":"said"}]}
emergency: null
speaks: {"content":[{"type":"text","text":"said"}]}
error: null
speaks: {"content":[{"type":"text","text":"said"}]}
true
`},
	limit{"http json", "both", "big messages", noNotice, nil, `
true true <nil>
true true <nil>
done 0 <nil>
`},
	limit{"http json", "both", "the client leaves with a call running", noNotice, clientLeaves, `
close: null
naps: closed
string: closed
ping: closed
note: closed
`},
	limit{"http stateless", "legacy", "the server introduces itself", noWayBack, nil, `
everything 1.0 All of it Ask.
{"completions":{},"logging":{},"prompts":{},"resources":{},"tools":{}}
bare 0 {"logging":{}}
`},
	limit{"http stateless", "legacy", "the client introduces itself", noSession, nil, `
who: {"content":[{"type":"text","text":"  {\"a\":1.10} elicitation=false sampling=false roots=false"}]}
`},
	limit{"http stateless", "legacy", "progress", noSession, nil, `
steps: {"content":[{"type":"text","text":"done"}]}
0 of 2.5: at 0
0.25 of 2.5: at 0.25
2.5 of 2.5: at 2.5
steps: {"content":[{"type":"text","text":"done"}]}
who: {"content":[{"type":"text","text":"  1 elicitation=false sampling=false roots=false"}]}
`},
	limit{"http stateless", "legacy", "log messages", noSession, nil, statelessLogs()},
	limit{"http json", "legacy", "questions to the user", noQuestion, nil, `
elicits: {"content":[{"type":"text","text":"mcp: elicitation/create: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
elicits: {"content":[{"type":"text","text":"mcp: elicitation/create: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
elicits: {"content":[{"type":"text","text":"mcp: elicitation/create: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
prompt: refused with -32603
resource: refused with -32603
`},
	limit{"http json", "legacy", "a page for the user", noQuestion, nil, `
opens: {"content":[{"type":"text","text":"mcp: elicitation/create: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
`},
	limit{"http json", "legacy", "questions to the model and about roots", noQuestion, nil, `
samples: {"content":[{"type":"text","text":"mcp: sampling/createMessage: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
roots: {"content":[{"type":"text","text":"mcp: roots/list: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
roots: {"content":[{"type":"text","text":"mcp: roots/list: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
`},
	limit{"http json, http stateless", "legacy", "several questions at once", noQuestion, severalRefused, `
several: true
`},
	limit{"http json", "legacy", "rounds with state", noQuestion, nil, `
rounds: refused with -32603
`},
	limit{"http json", "legacy", "questions whose answer fails", noQuestion, nil, `
roots: {"content":[{"type":"text","text":"mcp: roots/list: the answer over HTTP is one JSON object: nothing can be sent before it"}],"isError":true}
string: {"content":[{"type":"text","text":"text"}]}
`},
	limit{"http stateless", "legacy", "questions to the user", noQuestion, nil, `
elicits: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"form\":{}}}, which elicitation/create needs"}],"isError":true}
elicits: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"form\":{}}}, which elicitation/create needs"}],"isError":true}
elicits: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"form\":{}}}, which elicitation/create needs"}],"isError":true}
prompt: refused with -32603
resource: refused with -32603
`},
	limit{"http stateless", "legacy", "a page for the user", noQuestion, nil, `
opens: {"content":[{"type":"text","text":"the client did not declare {\"elicitation\":{\"url\":{}}}, which elicitation/create needs"}],"isError":true}
`},
	limit{"http stateless", "legacy", "questions to the model and about roots", noQuestion, nil, `
samples: {"content":[{"type":"text","text":"the client did not declare {\"sampling\":{}}, which sampling/createMessage needs"}],"isError":true}
roots: {"content":[{"type":"text","text":"the client did not declare {\"roots\":{}}, which roots/list needs"}],"isError":true}
roots: {"content":[{"type":"text","text":"the client did not declare {\"roots\":{}}, which roots/list needs"}],"isError":true}
`},
	limit{"http stateless", "legacy", "rounds with state", noQuestion, nil, `
rounds: refused with -32603
`},
	limit{"http stateless", "legacy", "questions whose answer fails", noQuestion, nil, `
roots: {"content":[{"type":"text","text":"the client did not declare {\"roots\":{}}, which roots/list needs"}],"isError":true}
string: {"content":[{"type":"text","text":"text"}]}
`},
)

func addLimits(more ...limit) bool {
	limits = append(limits, more...)
	return true
}

// statelessLogs: the level that was set belonged to a session that is over.
func statelessLogs() string {
	text := ""
	for _, level := range []string{"warning", "debug", "emergency", "error"} {
		text += level + ": null\nspeaks: {\"content\":[{\"type\":\"text\",\"text\":\"said\"}]}\n"
		for _, heard := range []string{"info", "warning", "error"} {
			text += `log: {"data":{"msg":"said","who":"tool","n":9007199254740993},"level":"` + heard + "\"}\n"
		}
	}
	return text + "true\n"
}

func napGivenUp(v *visit) {
	cs := v.connect("everything", ClientOptions{})
	ctx, cancel := context.WithCancel(v.ctx)
	v.saw("naps", nil, v.during(ctx, cs, "naps", cancel))
	v.call(cs, "string", nil)
}

func napTooLong(v *visit) {
	cs := v.connect("everything", ClientOptions{})
	_, err := cs.With(CallOptions{Timeout: 50 * time.Millisecond}).CallTool(v.ctx, "naps", nil)
	v.saw("naps", nil, err)
	v.call(cs, "string", nil)
}

func serverLeaves(v *visit) {
	cs := v.connect("everything", ClientOptions{})
	v.saw("naps", nil, v.during(v.ctx, cs, "naps", func() {
		v.call(cs, "leaves", nil)
		v.call(cs, "string", nil)
	}))
	v.saw("note", nil, cs.Notify(v.ctx, "x/note", nil))
	v.saw("close", nil, cs.Close())
}

func serverEndsListening(v *visit) {
	cs := v.connect("everything", ClientOptions{})
	sub, err := cs.Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true})
	if err != nil {
		v.t.Fatal(err)
	}
	_, err = cs.CallTool(v.ctx, "leaves", nil)
	v.saw("leaves", nil, err)
	if _, err := cs.CallTool(v.ctx, "change", map[string]string{"what": "tools", "name": "new"}); err != nil {
		v.t.Fatal(err)
	}
	v.events(sub, Change{Method: notifyToolsChanged})
}

func cannotListen(v *visit) {
	_, err := v.connect("everything", ClientOptions{}).Listen(v.ctx, SubscriptionFilter{ToolsListChanged: true})
	v.saw("listen", nil, err)
}

func clientLeaves(v *visit) {
	cs := v.connect("everything", ClientOptions{})
	v.saw("naps", nil, v.during(v.ctx, cs, "naps", func() { v.saw("close", nil, cs.Close()) }))
	v.call(cs, "string", nil)
	v.saw("ping", nil, cs.Ping(v.ctx))
	v.saw("note", nil, cs.Notify(v.ctx, "x/note", nil))
}

// severalRefused: which of the questions fails first is chance.
func severalRefused(v *visit) {
	r, err := v.connect("everything", answering()).CallTool(v.ctx, "several", nil)
	v.say("several: %t", err == nil && r.IsError)
}
