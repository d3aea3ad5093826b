package mcp

import (
	"context"
	"strings"
	"testing"
	"time"
)

// wireClient is the other end of a server: frames in, frames out.
type wireClient struct {
	t    *testing.T
	conn Conn
}

func dialServer(t *testing.T, s *Server) (*wireClient, *ServerSession) {
	t.Helper()
	ct, st := InMemory()
	ss, err := s.Connect(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ct.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close(); conn.Close() })
	return &wireClient{t, conn}, ss
}

func (c *wireClient) send(frames ...string) {
	c.t.Helper()
	for _, f := range frames {
		if err := c.conn.Write(context.Background(), []byte(f)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// expect reads one frame and compares it, without serverInfo.
func (c *wireClient) expect(want string) {
	c.t.Helper()
	c.expectPast("", want)
}

// expectPast is expect, but passes over frames that are the same as past.
func (c *wireClient) expectPast(past, want string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got := past
	for n := 0; got == past; n++ {
		frame, err := c.conn.Read(ctx)
		if err != nil || n == 50 {
			c.t.Fatalf("instead of %s, after %d of %s: %v", want, n, past, err)
		}
		got = strings.ReplaceAll(string(frame), `,"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}`, "")
		got = strings.ReplaceAll(got, `"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},`, "")
	}
	if got != want {
		c.t.Errorf("got  %s\nwant %s", got, want)
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func listenFrame(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,` + modernMeta + `}}`
}

func TestListenTellsWhatWasAskedForUntilItEnds(t *testing.T) {
	shows(t, "subs.ack.first", "subs.filter", "subs.filter.false", "subs.id.tag", "subs.id.value",
		"subs.updated.only-listed", "subs.concurrent", "subs.cancel.client", "subs.close.graceful", "subs.close.result",
		"resources.updated", "tools.list-changed.modern", "cancel.server.listen-teardown", "cancel.server.only-listen")
	leakCheck(t)
	s := testServer(nil)
	c, ss := dialServer(t, s)
	const sub = `"_meta":{"io.modelcontextprotocol/subscriptionId":`
	c.send(listenFrame("1", `{"toolsListChanged":true,"promptsListChanged":false}`))
	c.expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},` + sub + `1}}}`)
	c.send(listenFrame(`"1"`, `{"resourceSubscriptions":["test://a"]}`))
	c.expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["test://a"]},` + sub + `"1"}}}`)
	s.ResourceUpdated("test://b")
	s.RemovePrompts("greet")
	s.ResourceUpdated("test://a")
	c.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a",` + sub + `"1"}}}`)
	for range 500 { // coalesced
		s.AddTool(Tool{Name: "new", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, *Request) (*CallToolResult, error) { return nil, nil })
	}
	changed := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + sub + `1}}}`
	c.expect(changed) // a few more may follow if the machine is slow
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	c.expectPast(changed, `{"jsonrpc":"2.0","id":3,"result":{}}`)
	c.send(listenFrame("4", `{"promptsListChanged":true}`)) // the list is empty, but there
	c.expectPast(changed, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true},`+sub+`4}}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	c.expectPast(changed, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	s.ResourceUpdated("test://a")
	go ss.Close()
	c.expectPast(changed, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",`+sub+`1}}}`)
	c.expectPast(changed, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the server ends the subscription"}}`)
}

func TestLegacySessionIsToldOfChanges(t *testing.T) {
	shows(t, "tools.list-changed", "prompts.list-changed", "resources.list-changed", "resources.subscribe")
	leakCheck(t)
	s := testServer(nil)
	c, _ := dialServer(t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}}`)
	s.RemoveTools("fail") // not initialized: nothing is sent
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://a"}}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.ResourceUpdated("test://users/1")
	s.ResourceUpdated("test://a")
	c.expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
	s.RemoveTools("none")
	s.RemoveTools("panic")
	s.RemovePrompts("greet")
	s.RemoveResources("test://a")
	c.expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
	c.expect(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"test://users/1"}}`)
	c.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
}
