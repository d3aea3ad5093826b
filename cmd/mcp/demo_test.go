package main

import (
	"bytes"
	"context"
	"image/png"
	"log/slog"
	"slices"
	"testing"
	"time"

	"mcpkit/mcp"
)

// connectDemo connects a client of one revision to a demo server within this
// process.
func connectDemo(t *testing.T, version string, opts mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client, server := mcp.InMemory()
	if _, err := demoServer(slog.New(slog.DiscardHandler), 0).Connect(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	opts.Versions = []string{version}
	cs, err := mcp.NewClient(mcp.Implementation{Name: "test", Version: "1"}, &opts).Connect(context.Background(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

func TestDemoCompletion(t *testing.T) {
	greet := mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}
	translate := mcp.CompleteReference{Type: "ref/prompt", Name: "translate"}
	profile := mcp.CompleteReference{Type: "ref/resource", URI: profileTemplate}
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		cs := connectDemo(t, version, mcp.ClientOptions{})
		for _, c := range []struct {
			ref         mcp.CompleteReference
			name, value string
			want        []string
		}{
			{greet, "style", "f", []string{"formal", "friendly", "funny"}},
			{greet, "style", "fr", []string{"friendly"}},
			{greet, "name", "A", nil},
			{profile, "id", "25", []string{"25", "250"}},
			{profile, "id", "251", nil},
			{translate, "language", "E", []string{"English"}},
			{translate, "dialect", "", nil},
			{mcp.CompleteReference{Type: "ref/prompt", Name: "review"}, "x", "", nil},
		} {
			r, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: c.ref, Argument: mcp.CompleteArgument{Name: c.name, Value: c.value}})
			if err != nil || !slices.Equal(r.Completion.Values, c.want) {
				t.Errorf("%s: %v %s %q: %+v, %v", version, c.ref, c.name, c.value, r, err)
			}
		}
		r, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: profile, Argument: mcp.CompleteArgument{Name: "id"}})
		if err != nil || len(r.Completion.Values) != 100 || !r.Completion.HasMore || *r.Completion.Total != 250 {
			t.Errorf("%s: all ids: %+v, %v", version, r, err)
		}
		r, err = cs.Complete(t.Context(), &mcp.CompleteParams{Ref: translate, Argument: mcp.CompleteArgument{Name: "dialect", Value: "S"},
			Context: &mcp.CompleteContext{Arguments: map[string]string{"language": "German"}}})
		if err != nil || !slices.Equal(r.Completion.Values, []string{"Swiss"}) {
			t.Errorf("%s: by context: %+v, %v", version, r, err)
		}
		_, err = cs.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteReference{Type: "ref/prompt", Name: "none"}})
		if e, ok := err.(*mcp.Error); !ok || e.Code != mcp.CodeInvalidParams {
			t.Errorf("%s: completing an unknown prompt: %v", version, err)
		}
	}
}

func TestDemoLogo(t *testing.T) {
	if s := demoSound(); len(s) != 1044 || string(s[:4])+string(s[36:40]) != "RIFFdata" {
		t.Errorf("the sound has %d bytes", len(s))
	}
	img, err := png.Decode(bytes.NewReader(demoLogo()))
	if err != nil || img.Bounds().Dx() != 16 {
		t.Error(img, err)
	}
}

// Every level of the protocol goes through slog and comes out as itself.
func TestDemoLog(t *testing.T) {
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		logged := make(chan mcp.LoggingLevel, 1)
		cs := connectDemo(t, version, mcp.ClientOptions{Log: func(_ context.Context, p *mcp.LogParams) { logged <- p.Level }})
		if err := cs.SetLogLevel(t.Context(), "debug"); err != nil {
			t.Fatal(err)
		}
		for level := range logLevels {
			if _, err := mcp.CallTool[string](t.Context(), cs, "log", logArgs{level, "hello"}); err != nil {
				t.Error(err)
			}
			select {
			case got := <-logged:
				if string(got) != level {
					t.Errorf("%s: %s became %s", version, level, got)
				}
			case <-time.After(5 * time.Second):
				t.Errorf("%s: no message for %s", version, level)
			}
		}
	}
}
