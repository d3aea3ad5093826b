//go:build go1.25

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

// toolbox is a server with one tool "t" of an output schema, whose calls come
// to a result.
func toolbox(schema, result *string) react {
	return func(m Message) []string {
		switch m.Method {
		case methodToolsList:
			output := ""
			if *schema != "" {
				output = `,"outputSchema":` + *schema
			}
			return []string{resultOf(m, `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}`+output+`},{"name":"other","inputSchema":{"type":"object"}}]}`)}
		case methodToolsCall:
			return []string{resultOf(m, *result)}
		}
		return nil
	}
}

func listed(t *testing.T, cs *ClientSession) {
	t.Helper()
	for _, err := range cs.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

const numberN = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// Structured results are validated against the schema of the newest listing.
func TestClientOutputValidated(t *testing.T) {
	shows(t, "tools.output.validate", "tools.output.any", "tools.structured.any")
	fits, unfit := `{"content":[],"structuredContent":{"n":1}}`, `{"content":[],"structuredContent":{"n":"1"}}`
	eachEra(t, func(t *testing.T, version string) {
		schema, result := numberN, fits
		cs, s := connected(t, version, ClientOptions{}, toolbox(&schema, &result))
		call := func(what string, name string, ok bool) {
			t.Helper()
			_, err := cs.CallTool(t.Context(), name, nil)
			if (err == nil) != ok || isPeers(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		result = unfit
		call("not listed yet", "t", true)
		if got := len(s.of(methodToolsList)); got != 0 {
			t.Errorf("listed unasked")
		}
		listed(t, cs)
		call("unfit", "t", false)
		call("a tool without", "other", true)
		if _, err := CallTool[map[string]any](t.Context(), cs, "t", nil); err == nil {
			t.Error("unfit and typed")
		}
		for body, ok := range map[string]bool{
			fits: true, `{"content":[],"structuredContent":{}}`: false, `{"content":[],"structuredContent":null}`: false, `{"content":[{"type":"text","text":"{\"n\":1}"}]}`: false,
			`{"content":[],"isError":true,"structuredContent":{"n":"x"}}`: true, `{"content":[],"isError":true}`: true,
		} {
			result = body
			call(body, "t", ok)
		}
		result, schema = unfit, `{"type":"object","properties":{"n":{"type":"string"}}}`
		call("before it is listed again", "t", false)
		listed(t, cs)
		call("a newer listing", "t", true)
		schema = ""
		result = `{"content":[]}`
		call("missing", "t", false)
		listed(t, cs)
		call("no schema any more", "t", true)
		schema = numberN
		listed(t, cs)
		call("again", "t", false)
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		call("the list has changed", "t", true)
		if cs.link.outputs.size != 0 || len(cs.link.outputs.known) != 0 {
			t.Errorf("%d bytes are kept", cs.link.outputs.size)
		}
	})
	bubble(t, func(t *testing.T) { // any root type, any value
		schema, result := `{"type":"array","items":{"type":"integer"}}`, ""
		cs, _ := connected(t, Version20260728, ClientOptions{}, toolbox(&schema, &result))
		listed(t, cs)
		for value, ok := range map[string]bool{`[]`: true, `[1]`: true, `["a"]`: false, `{}`: false, `3`: false, `null`: false, `false`: false, `""`: false} {
			result = `{"content":[],"structuredContent":` + value + `}`
			if r, err := cs.CallTool(t.Context(), "t", nil); (err == nil) != ok || ok && string(r.StructuredContent) != value {
				t.Errorf("%s: %+v, %v", value, r, err)
			}
		}
	})
}

// A schema that cannot be used is passed over with a word in the log; what it
// refers to elsewhere is not fetched.
func TestClientOutputUnusable(t *testing.T) {
	shows(t, "tools.client.ref", "tools.output.validate")
	leakCheck(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	visits := make(chan bool, 16)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
			visits <- true
		}
	}()
	for _, version := range []string{Version20251125, Version20260728} {
		for _, schema := range []string{
			`{"type":"object","$ref":"http://` + ln.Addr().String() + `/schema.json"}`, `{"type":"object","properties":{"n":{"$ref":"file:///etc/hosts"}}}`,
			`{"type":"object","properties":7}`, `{"type":"object","$schema":"http://` + ln.Addr().String() + `/meta"}`, `{"type":"object","pattern":"("}`,
		} {
			result := `{"content":[],"structuredContent":{"n":"x"}}`
			var log bytes.Buffer
			cs, _ := connected(t, version, ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, toolbox(&schema, &result))
			listed(t, cs)
			log.Reset()
			for range 2 {
				if _, err := cs.CallTool(t.Context(), "t", nil); err != nil {
					t.Errorf("%s: %v", schema, err)
				}
			}
			if n := strings.Count(log.String(), "output schema"); n != 1 {
				t.Errorf("%s: %d lines in the log: %s", schema, n, &log)
			}
			cs.Close()
		}
	}
	if len(visits) != 0 {
		t.Errorf("%d connections were made", len(visits))
	}
}

// What is known of output schemas is bounded.
func TestClientOutputBounded(t *testing.T) {
	shows(t, "tools.output.validate")
	var l link
	for i := range maxOutputs + 10 {
		l.learn(&Tool{Name: fmt.Sprint(i), OutputSchema: json.RawMessage(`{"type":"object"}`)}, 0)
	}
	if len(l.outputs.known) != maxOutputs {
		t.Errorf("%d tools", len(l.outputs.known))
	}
	l.outputs.forget()
	for i := range 20 {
		l.learn(&Tool{Name: fmt.Sprint(i), OutputSchema: json.RawMessage(strings.Repeat(" ", 1<<20))}, 0)
	}
	if l.outputs.size > maxOutputSize || len(l.outputs.known) != 16 {
		t.Errorf("%d bytes of %d tools", l.outputs.size, len(l.outputs.known))
	}
	l.learn(&Tool{Name: "late", OutputSchema: json.RawMessage(`{}`)}, 1)
	if l.outputs.known["late"] != nil {
		t.Error("a listing from before the change was taken")
	}
}

// Content that lacks what its kind must have does not reach the model.
func TestClientContentValidated(t *testing.T) {
	shows(t, "tools.client.validate-results", "tools.content.embedded", "tools.content.resource-link", "tools.content.audio")
	eachEra(t, func(t *testing.T, version string) {
		schema, result := "", ""
		cs, _ := connected(t, version, ClientOptions{}, toolbox(&schema, &result))
		for block, ok := range map[string]bool{
			`{"type":"text","text":""}`: true, `{"type":"image","data":"","mimeType":"a/b"}`: true, `{"type":"audio","data":"AA==","mimeType":"a/b"}`: true,
			`{"type":"resource","resource":{"uri":"x:y","text":"a"}}`: true, `{"type":"resource","resource":{"uri":"x:y","blob":"AA=="}}`: true,
			`{"type":"resource_link","uri":"x:y","name":"n"}`: true, `{"type":"later","x":1}`: true, `{"type":"text","text":"a","annotations":null}`: true,
			`null`: false, `7`: false, `{}`: false, `{"text":"a"}`: false, `{"type":7}`: false, `{"type":null}`: false, `{"type":"text"}`: false, `{"type":"text","text":null}`: false, `{"type":"text","text":7}`: false,
			`{"type":"text","Text":"a"}`: false, `{"type":"image","mimeType":"a/b"}`: false, `{"type":"image","data":"AA=="}`: false, `{"type":"audio","data":"%","mimeType":"a/b"}`: false,
			`{"type":"resource"}`: false, `{"type":"resource","resource":{"uri":"x:y"}}`: false, `{"type":"resource","resource":{"text":"a"}}`: false, `{"type":"resource","resource":null}`: false,
			`{"type":"resource_link","uri":"x:y"}`: false, `{"type":"resource_link","name":"n"}`: false,
		} {
			result = `{"content":[{"type":"text","text":"first"},` + block + `]}`
			if r, err := cs.CallTool(t.Context(), "x", nil); (err == nil) != ok || isPeers(err) || ok && len(r.Content) != 2 {
				t.Errorf("%s: %+v, %v", block, r, err)
			}
		}
	})
}

// Icons with a source that nobody may use are not shown, wherever they are.
func TestClientIcons(t *testing.T) {
	shows(t, "icons.scheme.reject")
	const icons = `"icons":[{"src":"javascript:alert(1)"},{"src":"https://a.example/i.png"},{"src":"http://a.example/i.png"},{"src":"file:///i.png"},{"src":"ftp://a/i"},{"src":"ws://a/i"},{"src":"app:i"},{"src":"data:image/png;base64,AA=="}]`
	kept := func(t *testing.T, where string, got []Icon) {
		t.Helper()
		if len(got) != 2 || got[0].Src != "https://a.example/i.png" || got[1].Src != "data:image/png;base64,AA==" {
			t.Errorf("%s: %v", where, got)
		}
	}
	eachEra(t, func(t *testing.T, version string) {
		_, tr := script(t, func(m Message) []string {
			switch m.Method {
			case methodDiscover:
				return []string{resultOf(m, strings.Replace(discovered, `"version":"1"`, `"version":"1",`+icons, 1))}
			case methodInitialize:
				return []string{resultOf(m, strings.Replace(initializedAs(version), `"version":"1"`, `"version":"1",`+icons, 1))}
			case methodToolsCall:
				return []string{resultOf(m, `{"content":[{"type":"resource_link","uri":"x:y","name":"n",`+icons+`}]}`)}
			}
			return []string{resultOf(m, `{"tools":[{"name":"t","inputSchema":{"type":"object"},`+icons+`}],"prompts":[{"name":"p",`+icons+`}],"resources":[{"uri":"x:y","name":"n",`+icons+`}],"resourceTemplates":[{"uriTemplate":"x:{y}","name":"n",`+icons+`}]}`)}
		})
		cs, err := dial(t, ClientOptions{Versions: []string{version}}, tr)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		kept(t, "the server", cs.Server().Icons)
		for tool, err := range cs.Tools(ctx) {
			fine(t, tool != nil, err)
			kept(t, "a tool", tool.Icons)
		}
		for p, err := range cs.Prompts(ctx) {
			fine(t, p != nil, err)
			kept(t, "a prompt", p.Icons)
		}
		for r, err := range cs.Resources(ctx) {
			fine(t, r != nil, err)
			kept(t, "a resource", r.Icons)
		}
		for r, err := range cs.ResourceTemplates(ctx) {
			fine(t, r != nil, err)
			kept(t, "a template", r.Icons)
		}
		r, err := cs.CallTool(ctx, "t", nil)
		if err != nil {
			t.Fatal(err)
		}
		kept(t, "content", r.Content[0].Icons)
	})
}

// Whatever a tool's annotations say, it is called in the same way.
func TestClientAnnotationsUntrusted(t *testing.T) {
	shows(t, "tools.annotations.untrusted", "tools.client.timeout")
	eachEra(t, func(t *testing.T, version string) {
		var first string
		for _, annotations := range []string{
			``, `,"annotations":{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false,"openWorldHint":false,"title":"harmless"}`,
			`,"annotations":{"readOnlyHint":false,"idempotentHint":false,"destructiveHint":true,"openWorldHint":true}`,
		} {
			cs, s := connected(t, version, ClientOptions{}, func(m Message) []string {
				switch {
				case m.Method == methodToolsList:
					return []string{resultOf(m, `{"tools":[{"name":"t","inputSchema":{"type":"object"}`+annotations+`}]}`)}
				case m.Method == methodToolsCall && string(rawMember(m.Params, "arguments")) == `{"n":1}`:
					return []string{resultOf(m, `{"content":[],"ttlMs":60000}`)}
				}
				return nil
			})
			listed(t, cs)
			for range 2 { // neither kept nor, when it is not answered, sent again
				if _, err := cs.CallTool(t.Context(), "t", map[string]int{"n": 1}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := cs.CallTool(t.Context(), "t", map[string]int{"n": 2}); err == nil || isPeers(err) {
				t.Errorf("no answer: %v", err)
			}
			s.received()
			if sent := strings.Join(s.raw, "\n"); first == "" {
				first = sent
			} else if sent != first {
				t.Errorf("with %s:\n%s\nwithout:\n%s", annotations, sent, first)
			}
		}
	})
}
