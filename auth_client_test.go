//go:build !mcp_nohttp

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An oddRealm is a resource server and its authorization server, each path of
// which answers what a test says. Unless it says something, all is in order: the
// answers name the issuer /as of the same host.
type oddRealm struct {
	t     *testing.T
	url   string
	odd   map[string]func(w http.ResponseWriter, r *http.Request)
	token string // that the MCP server takes

	mu   sync.Mutex
	seen []string // METHOD path
	last map[string]url.Values
	log  *logLines
}

func newOddRealm(t *testing.T, odd map[string]func(w http.ResponseWriter, r *http.Request)) *oddRealm {
	o := &oddRealm{t: t, odd: odd, token: "good-token", last: make(map[string]url.Values), log: new(logLines)}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *oddRealm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	o.mu.Lock()
	o.seen = append(o.seen, r.Method+" "+r.URL.Path)
	o.last[r.URL.Path] = r.Form
	do := o.odd[r.URL.Path]
	token := o.token
	o.mu.Unlock()
	issuer := "http://" + r.Host + "/as"
	switch {
	case do != nil:
		do(w, r)
	case r.URL.Path == "/a/mcp":
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusOK)
	case r.URL.Path == "/.well-known/oauth-protected-resource/a/mcp":
		fmt.Fprintf(w, `{"resource":"http://%s/a/mcp","authorization_servers":["%s"]}`, r.Host, issuer)
	case r.URL.Path == "/.well-known/oauth-authorization-server/as":
		o.metadata(w, issuer, "")
	case r.URL.Path == "/as/register":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"client_id":"new","client_uri":"","logo_uri":null}`)
	case r.URL.Path == "/as/authorize":
		q := url.Values{"code": {"the-code"}, "state": {r.Form.Get("state")}, "iss": {issuer}}
		http.Redirect(w, r, r.Form.Get("redirect_uri")+"?"+q.Encode(), http.StatusFound)
	case r.URL.Path == "/as/token":
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","refresh_token":"refresh-1","expires_in":3600}`, token)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (o *oddRealm) metadata(w http.ResponseWriter, issuer, more string) {
	base := o.url + "/as"
	fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/token","registration_endpoint":"%s/register","code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true%s}`, issuer, base, base, base, more)
}

// use sends one request with the OAuth, as the transport does, and returns the
// status in the end.
func (o *oddRealm) use(auth *OAuth) (int, error) {
	return o.useWithin(context.Background(), auth, http.MethodPost)
}

func (o *oddRealm) useWithin(ctx context.Context, auth *OAuth, method string) (int, error) {
	o.mu.Lock()
	if auth.Open == nil && auth.Prompt == nil {
		auth.Open = (&realm{}).visit
	}
	if auth.Logger == nil {
		auth.Logger = slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	o.mu.Unlock()
	u, _ := url.Parse(o.url + "/a/mcp")
	c := &httpConn{t: HTTP{Auth: auth}, client: *http.DefaultClient}
	response, err := c.do(ctx, method, u, http.Header{headerVersion: {Version20260728}}, []byte("{}"))
	if err != nil {
		return 0, err
	}
	readOut(response)
	return response.StatusCode, nil
}

func (o *oddRealm) paths(prefix string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.seen {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

func says(status int, text string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, strings.NewReplacer("{origin}", "http://"+r.Host).Replace(text))
	}
}

type oddPaths = map[string]func(w http.ResponseWriter, r *http.Request)

// Every step of discovery may fail in any way: the next one is tried.
func TestFault59DiscoveryGoesOn(t *testing.T) {
	shows(t, "auth.prm.discovery-order", "auth.prm.client", "auth.asmeta.both", "auth.asmeta.order-path", "auth.asmeta.order-root")
	root := says(200, `{"resource":"{origin}","authorization_servers":["{origin}/as"]}`)
	named := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/named", scope="a b"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	broken := oddPaths{"404": says(404, ""), "401": says(401, ""), "403": says(403, ""), "500": says(500, ""), "HTML": says(200, "<html>"), "empty": says(200, "{}"), "a list": says(200, "[]"), "no server": says(200, `{"resource":"{origin}/a/mcp"}`), "twice": says(200, `{"resource":"{origin}/a/mcp","resource":"{origin}","authorization_servers":["{origin}/as"]}`)}
	for name, wrong := range broken {
		for at, odd := range map[string]oddPaths{
			"header":     {"/a/mcp": named, "/named": wrong},
			"path":       {"/.well-known/oauth-protected-resource/a/mcp": wrong, "/.well-known/oauth-protected-resource": root},
			"RFC 8414":   {"/.well-known/oauth-authorization-server/as": wrong, "/.well-known/openid-configuration/as": nil},
			"OpenID":     {"/.well-known/oauth-authorization-server/as": wrong, "/.well-known/openid-configuration/as": wrong, "/as/.well-known/openid-configuration": nil},
			"everywhere": {"/.well-known/oauth-authorization-server/as": wrong, "/.well-known/openid-configuration/as": wrong, "/as/.well-known/openid-configuration": wrong},
		} {
			o := newOddRealm(t, odd)
			for path, do := range odd {
				if do == nil {
					odd[path] = func(w http.ResponseWriter, r *http.Request) { o.metadata(w, o.url+"/as", "") }
				}
			}
			status, err := o.use(&OAuth{})
			if at == "everywhere" {
				if err == nil || strings.Count(err.Error(), ".well-known") != 3 {
					t.Errorf("%s %s: %v", name, at, err)
				}
			} else if status != 200 || err != nil {
				t.Errorf("%s at %s: %d %v", name, at, status, err)
			}
			if at == "header" && o.last["/as/authorize"].Get("scope") != "a b" {
				t.Errorf("asked for %v", o.last["/as/authorize"])
			}
		}
	}
	second := newOddRealm(t, oddPaths{"/.well-known/oauth-protected-resource/a/mcp": says(200, `{"resource":"{origin}/a/mcp","authorization_servers":["{origin}/gone","{origin}/as"]}`)})
	if status, err := second.use(&OAuth{}); status != 200 || err != nil {
		t.Errorf("the second authorization server: %d %v", status, err)
	}
	o := newOddRealm(t, oddPaths{"/.well-known/oauth-protected-resource/a/mcp": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"resource":"http://%s/a/mcp","authorization_servers":["http://%s/as"],"resource_name":null,"more":{}}`, r.Host, r.Host)
	}})
	if status, err := o.use(&OAuth{}); status != 200 || err != nil || o.paths("GET /.well-known") != 2 {
		t.Errorf("%d %v %v", status, err, o.seen)
	}
}

func TestFault60Issuers(t *testing.T) {
	shows(t, "auth.asmeta.issuer-match", "auth.iss.record")
	for issuer, places := range map[string][]string{
		"/":     {"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		"":      {"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		"/t":    {"/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"},
		"/t/":   {"/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"},
		"/t/u":  {"/.well-known/oauth-authorization-server/t/u", "/.well-known/openid-configuration/t/u", "/t/u/.well-known/openid-configuration"},
		"/t%2F": {"/.well-known/oauth-authorization-server/t/", "/.well-known/openid-configuration/t/", "/t//.well-known/openid-configuration"},
	} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Path); w.WriteHeader(404) }))
		if _, err := fetchServerMetadata(context.Background(), &fetcher{local: true}, server.URL+issuer); err == nil || !slices.Equal(asked, places) {
			t.Errorf("%q: %v, %v", issuer, asked, err)
		}
		server.Close()
	}
	for _, c := range []struct {
		path, says string // of the issuer; {origin} before it
		ok         bool
	}{
		{"/t", "/t", true}, {"/t", "/t/", false}, {"/t/", "/t", false}, {"", "", true}, {"", "/", true}, {"/", "", true}, {"/t", "/u", false}, {"/t", "", false}, {"/T", "/t", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"issuer":"http://%s%s","token_endpoint":"http://%s/token"}`, r.Host, c.says, r.Host)
		}))
		if _, err := fetchServerMetadata(context.Background(), &fetcher{local: true}, server.URL+c.path); (err == nil) != c.ok {
			t.Errorf("%q says %q: %v", c.path, c.says, err)
		}
		server.Close()
	}
	if _, err := fetchServerMetadata(context.Background(), &fetcher{}, "http://as.example"); err == nil {
		t.Error("an issuer without TLS")
	}
}

func TestFault61ResourcesThatAreSomethingElse(t *testing.T) {
	shows(t, "auth.resource.prm-match", "auth.resource.specific", "auth.token.only-issued")
	for resource, ok := range map[string]bool{
		"http://{host}/a/mcp": true, "http://{host}/a/mcp/": true, "http://{host}": true, "http://{host}/": true, "http://{host}/a": true, "HTTP://{host}/a/mcp": true,
		"http://{host}/a/mc": false, "http://{host}/a/mcp2": false, "http://{host}/b": false, "https://evil.example/a/mcp": false, "http://evil.example": false, "http://{host}/a%2Fmcp": false, "http://{host}/a/mcp/more": false, "https://{host}/a/mcp": false, "http://u@{host}/a/mcp": false, "http://{host}/a/mcp#f": false,
	} {
		o := newOddRealm(t, nil)
		host := strings.TrimPrefix(o.url, "http://")
		named := strings.ReplaceAll(resource, "{host}", host)
		o.odd = oddPaths{"/.well-known/oauth-protected-resource/a/mcp": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"resource":%q,"authorization_servers":["http://%s/as"]}`, named, r.Host)
		}}
		status, err := o.use(&OAuth{})
		if (err == nil && status == 200) != ok {
			t.Errorf("%s: %d %v", resource, status, err)
		}
		if !ok && o.paths("GET /as/authorize") > 0 {
			t.Errorf("%s: the user was asked", resource)
		}
		if ok && (o.last["/as/authorize"].Get("resource") != named || o.last["/as/token"].Get("resource") != named) {
			t.Errorf("%s: asked for %v and %v", resource, o.last["/as/authorize"], o.last["/as/token"])
		}
	}
}

// What comes back from the authorization endpoint and counts, or not.
func TestAuthAnswersOfOthers(t *testing.T) {
	shows(t, "auth.iss.supported-absent", "auth.iss.supported-present", "auth.iss.unadvertised-absent", "auth.iss.unadvertised-present", "auth.iss.no-normalise", "auth.iss.error", "auth.redirect.state", "auth.pkce.verify", "auth.token.no-query")
	const mine = "{issuer}"
	for _, c := range []struct {
		name, more string
		answer     url.Values // state is added
		want       string     // in the error; "" for none
	}{
		{"in order", "", url.Values{"code": {"c"}, "iss": {mine}}, ""},
		{"no iss", "", url.Values{"code": {"c"}}, "does not say whose"},
		{"another iss", "", url.Values{"code": {"c"}, "iss": {"https://evil.example"}}, "another issuer"},
		{"a slash more", "", url.Values{"code": {"c"}, "iss": {mine + "/"}}, "another issuer"},
		{"in capitals", "", url.Values{"code": {"c"}, "iss": {"HTTP" + mine[1:]}}, "another issuer"},
		{"twice", "", url.Values{"code": {"c"}, "iss": {mine, "https://evil.example"}}, "another issuer"},
		{"an error of another", "", url.Values{"error": {"evil_error"}, "error_description": {"evil-text"}, "iss": {"https://evil.example"}}, "another issuer"},
		{"an error", "", url.Values{"error": {"access_denied"}, "iss": {mine}}, "access_denied"},
		{"no code", "", url.Values{"iss": {mine}}, "no code"}, {"two codes", "", url.Values{"code": {"c", "d"}, "iss": {mine}}, "no code"},
		{"not promised, absent", `,"authorization_response_iss_parameter_supported":false`, url.Values{"code": {"c"}}, ""},
		{"not promised, wrong", `,"authorization_response_iss_parameter_supported":false`, url.Values{"code": {"c"}, "iss": {"https://evil.example"}}, "another issuer"},
		{"no PKCE", `,"code_challenge_methods_supported":["plain"]`, nil, "PKCE"}, {"PKCE not said", `,"code_challenge_methods_supported":null`, nil, "PKCE"},
	} {
		o := newOddRealm(t, nil)
		issuer := o.url + "/as"
		o.odd = oddPaths{"/.well-known/oauth-authorization-server/as": func(w http.ResponseWriter, r *http.Request) {
			var text bytes.Buffer
			w2 := httptest.NewRecorder()
			o.metadata(w2, issuer, "")
			text.Write(w2.Body.Bytes())
			doc := make(map[string]any)
			json.Unmarshal(text.Bytes(), &doc)
			if c.more != "" {
				json.Unmarshal([]byte("{"+c.more[1:]+"}"), &doc)
			}
			json.NewEncoder(w).Encode(doc)
		}}
		prompts := 0
		status, err := o.use(&OAuth{RedirectURL: "https://app.example/cb", Prompt: func(_ context.Context, page string) (url.Values, error) {
			prompts++
			u, _ := url.Parse(page)
			answer := url.Values{"state": {u.Query().Get("state")}}
			for k, values := range c.answer {
				for _, v := range values {
					answer.Add(k, strings.ReplaceAll(v, mine, issuer))
				}
			}
			return answer, nil
		}})
		if c.want == "" && (status != 200 || err != nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "evil")) {
			t.Errorf("%s: %d %v", c.name, status, err)
		}
		if c.want != "" && o.paths("POST /as/token") > 0 || c.answer == nil && prompts > 0 {
			t.Errorf("%s: it went on", c.name)
		}
	}
	o := newOddRealm(t, nil)
	if _, err := o.use(&OAuth{RedirectURL: "https://app.example/cb", Prompt: func(context.Context, string) (url.Values, error) {
		return url.Values{"code": {"c"}, "state": {"other"}, "iss": {o.url + "/as"}}, nil
	}}); err == nil || !strings.Contains(err.Error(), "state") {
		t.Errorf("the answer to another request: %v", err)
	}
}

// The listener takes the answer with the right state only, and one of them.
func TestAuthListenerTakesOneAnswer(t *testing.T) {
	shows(t, "auth.redirect.state", "auth.comm.redirect")
	leakCheck(t)
	o := newOddRealm(t, nil)
	var statuses []int
	auth := &OAuth{Open: func(ctx context.Context, page string) error {
		u, _ := url.Parse(page)
		q := u.Query()
		back := q.Get("redirect_uri")
		if b, _ := url.Parse(back); b.Hostname() != "127.0.0.1" || b.Scheme != "http" {
			t.Errorf("the answer goes to %s", back)
		}
		good := url.Values{"state": {q.Get("state")}, "code": {"c"}, "iss": {o.url + "/as"}}.Encode()
		for _, target := range []string{back, back + "?code=evil&state=x", back + "?code=evil&state=x&state=" + q.Get("state"), strings.TrimSuffix(back, callbackPath) + "/?" + good, back + "?" + good, back + "?" + good} {
			response, err := http.Get(target)
			if err != nil {
				break // it has what it wanted
			}
			statuses = append(statuses, response.StatusCode)
			readOut(response)
		}
		return nil
	}}
	status, err := o.use(auth)
	if status != 200 || err != nil || len(statuses) < 5 || !slices.Equal(statuses[:5], []int{400, 400, 400, 404, 200}) || o.last["/as/token"].Get("code") != "c" {
		t.Errorf("%d %v %v %v", status, err, statuses, o.last["/as/token"])
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestFault63RefreshTokensSurvive(t *testing.T) {
	shows(t, "auth.refresh.no-assume", "auth.refresh.confidential")
	var reply func(w http.ResponseWriter, r *http.Request)
	o := newOddRealm(t, oddPaths{"/as/token": func(w http.ResponseWriter, r *http.Request) { reply(w, r) }})
	auth := &OAuth{}
	issue := func(token, more string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			o.mu.Lock()
			o.token = token
			o.mu.Unlock()
			fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"%s}`, token, more)
		}
	}
	reply = issue("t1", `,"refresh_token":"r1","expires_in":3600`)
	must := func(step string) {
		t.Helper()
		if status, err := o.use(auth); status != 200 || err != nil {
			t.Errorf("%s: %d %v", step, status, err)
		}
	}
	u, _ := url.Parse(o.url + "/a/mcp")
	must("first")
	auth.expire("")
	reply = issue("t2", `,"expires_in":3600`) // no refresh token: the old one stays
	must("refreshed")
	if got := auth.tokenOf(u); got.Refresh != "r1" || got.Access != "t2" {
		t.Errorf("%+v", got)
	}
	auth.expire("")
	reply = says(503, "down")
	if _, err := o.use(auth); err == nil {
		t.Error("the endpoint is down, and nobody noticed")
	}
	if got := auth.tokenOf(u); got.Refresh != "r1" {
		t.Errorf("what is transient cost the token: %+v", got)
	}
	before := o.paths("GET /as/authorize")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	reply = issue("t3", `,"refresh_token":"r3","expires_in":3600`)
	o.useWithin(ctx, auth, http.MethodPost) // who started it has gone; it goes on
	must("after a failure")
	if got := auth.tokenOf(u); got.Refresh != "r3" || o.paths("GET /as/authorize") != before {
		t.Errorf("%+v after %d pages", got, o.paths("GET /as/authorize")-before)
	}
	auth.expire("")
	refused := 0
	reply = func(w http.ResponseWriter, r *http.Request) {
		if r.Form.Get("grant_type") == "refresh_token" {
			refused++
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		issue("t4", "")(w, r)
	}
	must("asked again")
	if refused != 1 || o.paths("GET /as/authorize") != before+1 {
		t.Errorf("refused %d times, %d pages", refused, o.paths("GET /as/authorize")-before)
	}
	auth.Tokens = failingStore{}
	o.token = "t5"
	reply = issue("t5", "")
	if _, err := o.use(auth); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("the token was not saved, and nobody heard of it: %v", err)
	}
}

type failingStore struct{}

func (failingStore) Load(context.Context, string) ([]byte, error) { return nil, nil }
func (failingStore) Save(context.Context, string, []byte) error {
	return errors.New("the disk is full")
}

func TestFault64And66NoEndlessLoops(t *testing.T) {
	shows(t, "auth.stepup.limit", "auth.stepup.react")
	challenge := func(status int, text string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", text)
			w.WriteHeader(status)
		}
	}
	for name, do := range map[string]func(w http.ResponseWriter, r *http.Request){
		"401 for ever": challenge(401, `Bearer error="invalid_token"`),
		"403 for ever": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				challenge(401, `Bearer scope="a"`)(w, r)
				return
			}
			challenge(403, `Bearer error="insufficient_scope", scope="b"`)(w, r)
		},
	} {
		o := newOddRealm(t, oddPaths{"/a/mcp": do})
		auth := &OAuth{}
		for range 10 {
			if status, err := o.use(auth); err == nil {
				t.Errorf("%s: %d", name, status)
			}
		}
		if n := o.paths("GET /as/authorize"); n > maxLogins {
			t.Errorf("%s: the user was asked %d times", name, n)
		}
	}
	plain := newOddRealm(t, oddPaths{"/a/mcp": challenge(403, `Bearer error="access_denied"`)})
	if status, err := plain.use(&OAuth{}); status != 403 || err != nil || plain.paths("GET /as") > 0 {
		t.Errorf("403 for another reason: %d %v", status, err)
	}
	// One prompt for all who wait; if the user does not want to, all hear of it.
	o := newOddRealm(t, nil)
	release, prompts := make(chan error), make(chan struct{}, 100)
	auth := &OAuth{Open: func(ctx context.Context, page string) error { prompts <- struct{}{}; return <-release }}
	results := make(chan error, 10)
	for range 10 {
		go func() { _, err := o.use(auth); results <- err }()
	}
	<-prompts
	release <- errors.New("not now")
	for range 10 {
		if err := <-results; err == nil || !strings.Contains(err.Error(), "not now") {
			t.Error(err)
		}
	}
	if len(prompts) > 0 {
		t.Errorf("%d more prompts", len(prompts))
	}
}

func TestFault65RepliesOfAllKinds(t *testing.T) {
	json, form := "application/json", formType+"; charset=utf-8"
	for _, c := range []struct {
		status     int
		typ, body  string
		access     string // "" is an error
		lifetime   time.Duration
		proof      bool
		errorNames string
	}{
		{200, json, `{"access_token":"a","token_type":"Bearer","expires_in":3600}`, "a", time.Hour, false, ""}, {201, json, `{"access_token":"a","token_type":"bearer","expires_in":"3600"}`, "a", time.Hour, false, ""},
		{200, json, `{"access_token":"a","expires_in":1.5}`, "a", 1500 * time.Millisecond, false, ""}, {200, json, `{"access_token":"a","expires_in":0}`, "a", 0, false, ""}, {200, json, `{"access_token":"a","expires_in":null,"refresh_token":null}`, "a", 0, false, ""},
		{200, json, `{"access_token":"a","expires_in":-1}`, "a", 0, false, ""}, {200, json, `{"access_token":"a","expires_in":"soon"}`, "a", 0, false, ""}, {200, json, `{"access_token":"a","token_type":"DPoP"}`, "a", 0, true, ""},
		{200, form, `access_token=a%2Bb&token_type=bearer&expires_in=60`, "a+b", time.Minute, false, ""}, {200, "", `{"access_token":"a"}`, "a", 0, false, ""},
		{200, json, `{"error":"bad_verification_code","error_description":"x"}`, "", 0, false, "bad_verification_code"}, {200, form, `error=bad_verification_code`, "", 0, false, "bad_verification_code"}, {400, json, `{"error":"invalid_grant"}`, "", 0, false, "invalid_grant"},
		{500, "text/html", `<html>`, "", 0, false, "500"}, {200, "text/html", `<html>`, "", 0, false, "malformed"}, {200, json, `{}`, "", 0, false, "access_token"}, {200, json, `{"access_token":""}`, "", 0, false, "access_token"}, {302, "", "", "", 0, false, "302"},
		{200, json, `{"access_token":"a","access_token":"b"}`, "", 0, false, "malformed"}, {200, json, `{"Access_Token":"a"}`, "", 0, false, "access_token"}, {200, json, `{"access_token":"a\nb"}`, "", 0, false, "access_token"}, {200, json, `{"access_token":"a","token_type":"mac"}`, "", 0, false, "mac"},
		{200, json, `{"access_token":"` + strings.Repeat("a", maxTokenLength+1) + `"}`, "", 0, false, "access_token"},
	} {
		reply, err := readTokenReply(c.status, http.Header{"Content-Type": {c.typ}}, []byte(c.body))
		if c.access != "" && (err != nil || reply.access != c.access || reply.lifetime != c.lifetime || reply.proof != c.proof) || c.access == "" && (err == nil || !strings.Contains(err.Error(), c.errorNames)) {
			t.Errorf("%d %.80s: %+v %v", c.status, c.body, reply, err)
		}
	}
}

// A public server cannot send the client to its own machine.
func TestAuthPublicServersStayOutside(t *testing.T) {
	shows(t, "secbp.ssrf.private", "secbp.ssrf.consider")
	reached := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached++; w.Write([]byte("{}")) }))
	defer inner.Close()
	public, _ := url.Parse("https://mcp.example/mcp")
	s := (&OAuth{Open: func(context.Context, string) error { return nil }}).state(public)
	f := s.fetcher("")
	f.client = inner.Client()
	if _, err := fetchServerMetadata(context.Background(), f, inner.URL); err == nil {
		t.Error("metadata was fetched")
	}
	if _, err := s.tokenRequest(context.Background(), &AuthServerMetadata{TokenEndpoint: inner.URL}, &savedClient{ID: "c"}, url.Values{}, nil); err == nil {
		t.Error("a token was asked for")
	}
	if _, err := s.register(context.Background(), &party{as: &AuthServerMetadata{RegistrationEndpoint: inner.URL}}, "https://app.example/cb"); err == nil {
		t.Error("the client registered")
	}
	if reached > 0 {
		t.Errorf("reached %d times", reached)
	}
}

// Credentials of one authorization server are never shown to another.
func TestAuthCredentialsStayWithTheirIssuer(t *testing.T) {
	shows(t, "auth.bind.issuer-key", "auth.bind.no-assume", "auth.bind.no-reuse", "auth.bind.reregister", "auth.bind.separate", "auth.bind.prereg-mismatch", "auth.bind.cimd-portable")
	now := "/as"
	o := newOddRealm(t, nil)
	o.odd = oddPaths{
		"/.well-known/oauth-protected-resource/a/mcp": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"resource":"http://%s/a/mcp","authorization_servers":["http://%s%s"]}`, r.Host, r.Host, now)
		},
		"/.well-known/oauth-authorization-server/as2": func(w http.ResponseWriter, r *http.Request) {
			base := o.url + "/as2"
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/token","registration_endpoint":"%s/register","code_challenge_methods_supported":["S256"]}`, base, base, base, base)
		},
		"/as2/register": says(200, `{"client_id":"second"}`),
		"/as2/authorize": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.Form.Get("redirect_uri")+"?code=c2&state="+r.Form.Get("state"), http.StatusFound)
		},
		"/as2/token": func(w http.ResponseWriter, r *http.Request) {
			o.mu.Lock()
			o.token = "of-the-second"
			o.mu.Unlock()
			fmt.Fprint(w, `{"access_token":"of-the-second"}`)
		},
	}
	auth := &OAuth{}
	if status, err := o.use(auth); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	now, o.token = "/as2", "other"
	if status, err := o.use(auth); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	for _, form := range []url.Values{o.last["/as2/authorize"], o.last["/as2/token"]} {
		if form.Get("client_id") != "second" || form.Has("refresh_token") || strings.Contains(form.Encode(), "refresh-1") {
			t.Errorf("shown to the second: %v", form)
		}
	}
	_, err := newOddRealm(t, nil).use(&OAuth{ClientID: "mine", ClientSecret: "hush", Issuer: "https://as.example"})
	if err == nil || !strings.Contains(err.Error(), "another issuer") || strings.Contains(err.Error(), "hush") {
		t.Errorf("registered elsewhere: %v", err)
	}
}

// A registration that is refused, and one that there is no way to make.
func TestAuthRegistrationThatFails(t *testing.T) {
	shows(t, "auth.dcr.failure", "auth.dcr.failure-surface", "auth.dcr.app-type", "auth.dcr.app-type-native", "auth.cimd.check", "auth.cimd.url", "auth.refresh.grant-types")
	o := newOddRealm(t, oddPaths{"/as/register": says(400, `{"error":"invalid_redirect_uri","error_description":"no \u001b loopback"}`)})
	if _, err := o.use(&OAuth{}); err == nil || !strings.Contains(err.Error(), "invalid_redirect_uri: no  loopback") {
		t.Error(err)
	}
	body := ""
	o = newOddRealm(t, oddPaths{"/as/register": func(w http.ResponseWriter, r *http.Request) {
		var m ClientMetadata
		json.NewDecoder(r.Body).Decode(&m)
		body = fmt.Sprint(m.ApplicationType, m.GrantTypes, len(m.RedirectURIs))
		fmt.Fprint(w, `{"client_id":"x"}`)
	}})
	if status, err := o.use(&OAuth{ClientMetadataURL: "https://app.example/client.json"}); status != 200 || err != nil || body != "native[authorization_code refresh_token] 1" {
		t.Errorf("%d %v %s", status, err, body) // the document's URL is not for a server that does not take such
	}
	o.use(&OAuth{RedirectURL: "https://app.example/cb", Prompt: func(context.Context, string) (url.Values, error) { return nil, errors.New("no") }})
	if !strings.HasPrefix(body, "web") {
		t.Error(body)
	}
	without := newOddRealm(t, nil)
	without.odd = oddPaths{"/.well-known/oauth-authorization-server/as": func(w http.ResponseWriter, r *http.Request) {
		without.metadata(w, without.url+"/as", `,"registration_endpoint_2":"","client_id_metadata_document_supported":true`)
	}}
	for document, ok := range map[string]bool{"https://app.example/client.json": true, "https://app.example": false, "http://app.example/c": false} {
		status, err := without.use(&OAuth{ClientMetadataURL: document})
		if ok && (status != 200 || without.last["/as/token"].Get("client_id") != document) || !ok && err == nil {
			t.Errorf("%s: %d %v", document, status, err)
		}
	}
	for _, auth := range []*OAuth{{ClientID: "x", Prompt: func(context.Context, string) (url.Values, error) { return nil, nil }}, {Grant: ClientCredentials()}} {
		if _, err := newOddRealm(t, nil).use(auth); err == nil {
			t.Errorf("%+v", auth)
		}
	}
}

// Servers of 2025-03-26 are their own authorization servers.
func TestAuthOldServers(t *testing.T) {
	shows(t, "auth.v0326.base-url", "auth.v0326.default-paths", "auth.v0326.metadata-client", "auth.v0326.version-header", "auth.v0326.oauth21")
	code := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.Form.Get("redirect_uri")+"?code=c&state="+r.Form.Get("state"), http.StatusFound)
	}
	versions := make(map[string]bool)
	missing := func(w http.ResponseWriter, r *http.Request) {
		versions[r.Header.Get(headerVersion)] = true
		w.WriteHeader(404)
	}
	o := newOddRealm(t, oddPaths{
		"/.well-known/oauth-protected-resource/a/mcp": missing, "/.well-known/oauth-authorization-server": missing, "/authorize": code, "/register": says(201, `{"client_id":"c"}`), "/token": says(200, `{"access_token":"good-token"}`),
	})
	if status, err := o.use(&OAuth{}); status != 200 || err != nil || len(versions) != 1 || !versions[Version20260728] {
		t.Errorf("default paths: %d %v %v", status, err, versions)
	}
	o = newOddRealm(t, oddPaths{
		"/.well-known/oauth-protected-resource/a/mcp": missing, "/o/authorize": code, "/o/register": says(201, `{"client_id":"c"}`), "/o/token": says(200, `{"access_token":"good-token"}`),
		"/.well-known/oauth-authorization-server": says(200, `{"issuer":"{origin}","authorization_endpoint":"{origin}/o/authorize","token_endpoint":"{origin}/o/token","registration_endpoint":"{origin}/o/register","code_challenge_methods_supported":["S256"]}`),
	})
	if status, err := o.use(&OAuth{}); status != 200 || err != nil || o.paths("GET /authorize") > 0 {
		t.Errorf("metadata at the origin: %d %v", status, err)
	}
}

// A server that wants credentials of another kind is heard.
func TestAuthWithoutOAuth(t *testing.T) {
	o := newOddRealm(t, oddPaths{"/a/mcp": says(401, "a key, please"), "/.well-known/oauth-protected-resource/a/mcp": says(404, "")})
	if status, err := o.use(&OAuth{}); status != 401 || err != nil {
		t.Errorf("%d %v", status, err)
	}
}

func TestAuthTokensAreKept(t *testing.T) {
	shows(t, "auth.refresh.confidential", "auth.token.every-request")
	dir, err := os.MkdirTemp("", "tokens")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) // which fails where Windows is not the real one
	path := filepath.Join(dir, "deep", "tokens.json")
	o := newOddRealm(t, nil)
	if status, err := o.use(&OAuth{Tokens: FileTokens(path)}); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	before := o.paths("GET /as/authorize")
	next := &OAuth{Tokens: FileTokens(path)}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if status, err := o.useWithin(context.Background(), next, method); status != 200 || err != nil {
			t.Errorf("%s: %d %v", method, status, err)
		}
	}
	if o.paths("GET /as/authorize") != before {
		t.Error("the user was asked again")
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".tokens-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := next.Forget(context.Background(), o.url+"/a/mcp"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "token ") {
		t.Errorf("%s %v", text, err)
	}
	os.WriteFile(path, []byte("no JSON"), 0o600)
	if _, err := FileTokens(path).Load(context.Background(), "x"); err == nil {
		t.Error("a file of something else is taken")
	}
	if err := FileTokens(path).Save(context.Background(), "x", nil); err == nil {
		t.Error("a file of something else is overwritten")
	}
	if log := o.log.String(); strings.Contains(log, "good-token") || strings.Contains(log, "refresh-1") || strings.Contains(log, "the-code") {
		t.Errorf("secrets in the log: %s", log)
	}
	for _, secret := range []string{o.last["/as/authorize"].Get("state"), o.last["/as/token"].Get("code_verifier")} {
		if strings.Contains(o.log.String(), secret) {
			t.Error("secrets in the log")
		}
	}
}

// A server that wants a nonce in proofs gets it, with a new proof.
func TestAuthProofsWithNonces(t *testing.T) {
	shows(t, "ext.auth.dpop.rs-nonce", "ext.auth.dpop.proof", "ext.auth.dpop.scheme")
	var ids []string
	o := newOddRealm(t, nil)
	o.odd = oddPaths{
		"/a/mcp": func(w http.ResponseWriter, r *http.Request) {
			proof, err := parseJWT(r.Header.Get("DPoP"))
			switch {
			case r.Header.Get("Authorization") != "DPoP bound":
				w.Header().Set("WWW-Authenticate", `DPoP algs="ES256"`)
				w.WriteHeader(401)
			case err != nil || len(r.Header["Dpop"]) != 1:
				t.Errorf("the proof: %v", err)
			case proof.claims.Nonce != "n-1":
				ids = append(ids, proof.claims.Jti)
				w.Header().Set("DPoP-Nonce", "n-1")
				w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
				w.WriteHeader(401)
			default:
				if ids = append(ids, proof.claims.Jti); proof.claims.Ath != tokenHash("bound") || proof.claims.Htm != "POST" {
					t.Errorf("%+v", proof.claims)
				}
			}
		},
		"/as/token": says(200, `{"access_token":"bound","token_type":"DPoP"}`),
	}
	auth := &OAuth{}
	for range 2 {
		if status, err := o.use(auth); status != 200 || err != nil {
			t.Errorf("%d %v", status, err)
		}
	}
	if len(ids) != 3 || len(unique(ids)) != 3 {
		t.Errorf("proofs %v", ids)
	}
}

// What carries assertions goes over TLS only.
func TestAuthAssertionsNeedTLS(t *testing.T) {
	shows(t, "ext.auth.ema.tls", "ext.auth.wif.tls", "auth.comm.https")
	for name, grant := range map[string]*Grant{
		"identity provider": EnterpriseManaged(EnterpriseOptions{TokenEndpoint: "http://idp.example/token", IDToken: func(context.Context) (string, error) { return "x", nil }}),
		"platform":          WorkloadIdentity(func(context.Context, string) (string, error) { return "x", nil }),
	} {
		o := newOddRealm(t, nil)
		o.odd = oddPaths{"/.well-known/oauth-authorization-server/as": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"issuer":"%s/as","token_endpoint":"http://as.example/token"}`, o.url)
		}}
		if _, err := o.use(&OAuth{ClientID: "c", Grant: grant}); err == nil || !strings.Contains(err.Error(), "https") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An assertion that was refused is not sent again, and no other grant is tried.
func TestAuthAssertionsAreNotRepeated(t *testing.T) {
	shows(t, "ext.auth.wif.no-retry", "ext.auth.wif.no-fallback", "ext.auth.wif.errors", "ext.auth.ema.exchange-response")
	o := newOddRealm(t, oddPaths{"/as/token": says(400, `{"error":"unauthorized_client"}`)})
	auth := &OAuth{Grant: WorkloadIdentity(func(context.Context, string) (string, error) { return "the-assertion", nil })}
	for range 3 {
		if _, err := o.use(auth); err == nil || strings.Contains(err.Error(), "the-assertion") {
			t.Error(err)
		}
	}
	if n := o.paths("POST /as/token"); n != 1 {
		t.Errorf("sent %d times", n)
	}
	idp := newOddRealm(t, oddPaths{"/idp": says(200, `{"access_token":"x","issued_token_type":"urn:other","token_type":"N_A"}`)})
	auth = &OAuth{ClientID: "c", Grant: EnterpriseManaged(EnterpriseOptions{TokenEndpoint: idp.url + "/idp", IDToken: func(context.Context) (string, error) { return "the-id-token", nil }})}
	if _, err := newOddRealm(t, nil).use(auth); err == nil || !strings.Contains(err.Error(), "something else") || strings.Contains(err.Error(), "the-id-token") {
		t.Error(err)
	}
}
