//go:build !mcp_nohttp

package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A reusedWriter keeps a response and allocates nothing for the next one.
type reusedWriter struct {
	header http.Header
	status int
	body   []byte
}

func (r *reusedWriter) Header() http.Header    { return r.header }
func (r *reusedWriter) WriteHeader(status int) { r.status = status }
func (r *reusedWriter) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}

// repeated returns what serves the same POST again and again, and what it
// writes to.
func repeated(h http.Handler, body string, header http.Header) (serve func(), w *reusedWriter) {
	content := bytes.NewReader([]byte(body))
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header, r.ContentLength, r.Body = header, int64(len(body)), io.NopCloser(content)
	w = &reusedWriter{header: http.Header{}}
	return func() {
		clear(w.header)
		w.status, w.body = http.StatusOK, w.body[:0]
		content.Reset([]byte(body))
		h.ServeHTTP(w, r)
	}, w
}

// TestHTTPCallCeiling: what a typed call costs beyond a handler that reads the
// body and writes a fixed answer.
func TestHTTPCallCeiling(t *testing.T) {
	s := testServer(nil)
	h := NewHTTPHandler(s, nil)
	defer h.Shutdown(context.Background())
	accept := []string{"application/json, text/event-stream"}
	open, opened := repeated(h, initializeFrame("0", Version20251125, "{}"), http.Header{"Content-Type": jsonType, "Accept": accept})
	open()
	session := opened.header[headerSession]
	const args = `"name":"add","arguments":{"a":1,"b":2}`
	for _, c := range []struct {
		era, body string
		header    http.Header
	}{
		{"modern", modernRequest("1", methodToolsCall, args, "{}"), http.Header{headerVersion: {Version20260728}, headerMethod: {methodToolsCall}, headerName: {"add"}}},
		{"legacy", request("1", methodToolsCall, args), http.Header{headerVersion: {Version20251125}, headerSession: session}},
	} {
		t.Run(c.era, func(t *testing.T) {
			c.header["Content-Type"], c.header["Accept"] = jsonType, accept
			serve, w := repeated(h, c.body, c.header)
			serve()
			if w.status != http.StatusOK || !bytes.Contains(w.body, []byte(`"structuredContent":{"sum":3}`)) {
				t.Fatalf("%d %s", w.status, w.body)
			}
			answer := bytes.Clone(w.body)
			bare, _ := repeated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.ReadAll(r.Body)
				w.Header()["Content-Type"] = jsonType
				w.Write(answer)
			}), c.body, c.header)
			allocs, size := cost(serve)
			bareAllocs, bareSize := cost(bare)
			t.Logf("%.0f allocations and %.0f bytes beyond the %.0f and %.0f of a bare handler", allocs-bareAllocs, size-bareSize, bareAllocs, bareSize)
			if !raceEnabled && (allocs-bareAllocs > 32 || size-bareSize > 3<<10) {
				t.Errorf("%.0f allocations and %.0f bytes too many", allocs-bareAllocs, size-bareSize)
			}
		})
	}
}
