package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"mcpkit/mcp"
)

const form = `{"type":"object","required":["name","size"],"properties":{
	"name": {"type":"string","title":"Your name"},
	"size": {"type":"integer","minimum":1},
	"agree": {"type":"boolean","default":true},
	"colour": {"type":"string","enum":["red","green"]},
	"days": {"type":"array","items":{"anyOf":[{"const":"mo","title":"Monday"},{"const":"tu","title":"Tuesday"}]}}}}`

func TestFill(t *testing.T) {
	for _, c := range []struct{ typed, action, content string }{
		{"Ada\n7\nn\nred\nmo, tu\ny\n", "accept", `{"agree":false,"colour":"red","days":["mo","tu"],"name":"Ada","size":7}`},
		{"7\n8\n\n\n\ny\n", "accept", `{"agree":true,"name":"7","size":8}`},
		{"\nAda\nbig\n0\n3\nmaybe\ny\nblue\ngreen\nwe\n\nyes\n", "accept", `{"agree":true,"colour":"green","name":"Ada","size":3}`},
		{"Ada\n7\n\n\n\nn\n", "decline", ""},
		{"Ada\n7\n\n\n\n", "cancel", ""},
		{"", "cancel", ""},
	} {
		var out bytes.Buffer
		u := &user{in: strings.NewReader(c.typed), out: &out}
		r, err := u.fill(context.Background(), &mcp.ElicitParams{RequestedSchema: []byte(form)})
		if err != nil || r.Action != c.action || string(r.Content) != c.content {
			t.Errorf("%q: %+v, %v\n%s", c.typed, r, err, &out)
		}
	}
}

// The whole address and its host are shown, what is odd about it is said, and
// the user is asked.
func TestVisit(t *testing.T) {
	const asked = "Will you open it, in a browser? It is not done for you. [y/n] "
	for _, c := range []struct{ url, typed, action, shown string }{
		{"https://example.com/pay?id=7#top", "y\n", "accept", "It wants you to open a page of example.com:\n  https://example.com/pay?id=7#top\n" + asked},
		{"https://example.com/", "no\n", "decline", "It wants you to open a page of example.com:\n  https://example.com/\n" + asked},
		{"https://example.com/", "", "cancel", "It wants you to open a page of example.com:\n  https://example.com/\n" + asked},
		{"http://bank.example@127.0.0.1:1/", "y\n", "accept", "It wants you to open a page of 127.0.0.1:\n  http://bank.example@127.0.0.1:1/\n" +
			"Beware: what you enter there is not protected by https.\nBeware: what stands before the @ is not the host.\n" + asked},
		{"https://pay.XN--80ak6aa92e.com/", "y\n", "accept", "It wants you to open a page of pay.XN--80ak6aa92e.com:\n  https://pay.XN--80ak6aa92e.com/\n" +
			"Beware: the name of the host may look like that of another.\n" + asked},
		{"https://аpple.com/", "y\n", "accept", "It wants you to open a page of аpple.com:\n  https://аpple.com/\n" +
			"Beware: the name of the host may look like that of another.\n" + asked},
	} {
		var out bytes.Buffer
		u := &user{in: strings.NewReader(c.typed), out: &out}
		if !u.showURL(c.url) {
			t.Errorf("%s: refused", c.url)
		}
		r, err := u.visit(context.Background())
		if err != nil || r.Action != c.action || r.Content != nil || out.String() != c.shown {
			t.Errorf("%s: %+v, %v\n%s", c.url, r, err, &out)
		}
	}
	for _, url := range []string{"", "https://", "file:///etc/passwd", "javascript:alert(1)", "https://a b/", "::"} {
		var out bytes.Buffer
		u := &user{in: strings.NewReader("y\n"), out: &out}
		r, err := u.elicit(context.Background(), &mcp.ElicitParams{Mode: "url", URL: url, Message: "m"})
		if err != nil || r.Action != "decline" || !strings.Contains(out.String(), "wrong") {
			t.Errorf("%q: %+v, %v\n%s", url, r, err, &out)
		}
	}
}

func TestFillPrompts(t *testing.T) {
	var out bytes.Buffer
	u := &user{in: strings.NewReader("Ada\n0\n1\n\n\n\ny\n"), out: &out}
	if _, err := u.fill(context.Background(), &mcp.ElicitParams{RequestedSchema: []byte(form)}); err != nil {
		t.Error(err)
	}
	want := "An empty line leaves a field out, the end of input cancels.\n" +
		"  Your name (string): " +
		"  size (integer): " +
		"  That does not fit: must be at least 1\n" +
		"  size (integer): " +
		"  agree (boolean; default true): " +
		"  colour (string; red | green; optional): " +
		"  days (any of, with commas between; mo = Monday | tu = Tuesday; optional): " +
		"Send this to the server? [y/n] "
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A question that is given up does not wait for the user.
func TestFillGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	u := &user{in: &neverReader{make(chan struct{})}, out: new(bytes.Buffer)}
	if r, err := u.fill(ctx, &mcp.ElicitParams{RequestedSchema: []byte(form)}); err != context.Canceled {
		t.Error(r, err)
	}
}

type neverReader struct{ never chan struct{} }

func (r *neverReader) Read([]byte) (int, error) {
	<-r.never
	return 0, nil
}
