//go:build !mcp_nohttp

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An authProbe talks to an authorization server by hand.
type authProbe struct {
	t    *testing.T
	s    *AuthServer
	fail func(r *http.Request) error
}

const (
	probeVerifier = "0123456789012345678901234567890123456789012345678901234567890123"
	probeRedirect = "https://app.example/back"
)

func newAuthProbe(t *testing.T, change func(*AuthServerOptions)) *authProbe {
	p := &authProbe{t: t}
	opts := AuthServerOptions{
		Issuer: "https://as.example/t", Resources: []string{"https://rs.example/mcp", "https://rs.example/other"}, Scopes: []string{"read", "write"}, Registration: true,
		Clients: []AuthClient{
			{ClientMetadata: ClientMetadata{ClientID: "public", ClientName: "App", RedirectURIs: []string{probeRedirect, "http://127.0.0.1:1234/cb", "http://localhost/cb", "com.example.app:/cb"}, GrantTypes: []string{"authorization_code", "refresh_token"}}},
			{ClientMetadata: ClientMetadata{ClientID: "secret", RedirectURIs: []string{probeRedirect + "?a=b"}, GrantTypes: []string{"authorization_code", "client_credentials"}, Scope: "read"}, Secret: "s3cret"},
			{ClientMetadata: ClientMetadata{ClientID: "bound", RedirectURIs: []string{probeRedirect}, DPoPBoundAccessTokens: true}},
		},
		Consent: func(w http.ResponseWriter, r *http.Request, a *Authorization) {
			if r.URL.Query().Get("scope") == "write" {
				a.Deny(w, r)
				return
			}
			a.Approve(w, r, "ada", a.Scopes)
		},
		RateLimit: func(r *http.Request) error {
			if p.fail != nil {
				return p.fail(r)
			}
			return nil
		},
	}
	if change != nil {
		change(&opts)
	}
	p.s = NewAuthServer(opts)
	return p
}

func (p *authProbe) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.s.ServeHTTP(w, r)
	return w
}

// ask sends an authorization request: a good one with some parameters changed,
// those that are "-" left out. It returns the answer's query, or the status and
// text of a page.
func (p *authProbe) ask(changes ...string) (answer url.Values, location, page string) {
	q := url.Values{"response_type": {"code"}, "client_id": {"public"}, "redirect_uri": {probeRedirect}, "state": {"st"}, "scope": {"read"}, "resource": {"https://rs.example/mcp"}, "code_challenge": {tokenHash(probeVerifier)}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(changes); i += 2 {
		if q.Del(changes[i]); changes[i+1] != "-" {
			q.Set(changes[i], changes[i+1])
		}
	}
	w := p.do(httptest.NewRequest(http.MethodGet, "/t/authorize?"+q.Encode(), nil))
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Access-Control-Allow-Origin": ""} {
		if got := w.Header().Get(name); got != want {
			p.t.Errorf("%s: %q", name, got)
		}
	}
	if w.Code != http.StatusSeeOther {
		return nil, "", fmt.Sprint(w.Code, " ", w.Body)
	}
	u, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		p.t.Fatal(err)
	}
	answer = u.Query()
	u.RawQuery = ""
	return answer, u.String(), ""
}

// post posts a form, with Basic credentials "id:secret" or none.
func (p *authProbe) post(path, basic string, fields ...string) (int, map[string]any) {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "/t"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", formType)
	if id, secret, ok := strings.Cut(basic, ":"); ok {
		r.SetBasicAuth(id, secret)
	}
	return p.answer(r)
}

func (p *authProbe) answer(r *http.Request) (int, map[string]any) {
	w := p.do(r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil && w.Code != http.StatusNoContent {
		p.t.Errorf("%s: %d %s", r.URL, w.Code, w.Body)
	}
	if r.Method == http.MethodPost && w.Header().Get("Cache-Control") != "no-store" {
		p.t.Error("the answer may be kept")
	}
	return w.Code, answer
}

func (p *authProbe) code(changes ...string) string {
	answer, _, page := p.ask(changes...)
	if answer.Get("code") == "" {
		p.t.Fatalf("no code: %v %s", answer, page)
	}
	return answer.Get("code")
}

func (p *authProbe) trade(code string, changes ...string) (int, map[string]any) {
	fields := map[string]string{"grant_type": "authorization_code", "client_id": "public", "code": code, "redirect_uri": probeRedirect, "code_verifier": probeVerifier, "resource": "https://rs.example/mcp"}
	for i := 0; i < len(changes); i += 2 {
		if delete(fields, changes[i]); changes[i+1] != "-" {
			fields[changes[i]] = changes[i+1]
		}
	}
	var list []string
	for k, v := range fields {
		list = append(list, k, v)
	}
	return p.post("/token", "", list...)
}

func TestAuthServerDocuments(t *testing.T) {
	shows(t, "auth.as.metadata", "auth.pkce.as-oidc", "auth.iss.as-advertise", "ext.auth.dpop.as-metadata", "ext.auth.cc.as-methods", "ext.auth.cc.as-algs", "auth.v0326.metadata-server", "auth.v0326.fallback-server", "auth.v0326.grants")
	p := newAuthProbe(t, nil)
	want := p.s.Metadata()
	for _, path := range []string{"/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"} {
		w := p.do(httptest.NewRequest(http.MethodGet, path, nil))
		var m AuthServerMetadata
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || !reflect.DeepEqual(m, want) || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	if want.Issuer != "https://as.example/t" || want.TokenEndpoint != "https://as.example/t/token" || !slices.Equal(want.CodeChallengeMethodsSupported, []string{"S256"}) || !want.AuthorizationResponseIssParameterSupported || slices.Contains(want.DPoPSigningAlgValuesSupported, "none") {
		t.Errorf("%+v", want)
	}
	plain := NewAuthServer(AuthServerOptions{Issuer: "https://as.example", Resources: []string{"https://as.example/mcp"}, Registration: true, Consent: ConsentPage(nil)}).Metadata()
	if got := []string{plain.AuthorizationEndpoint, plain.TokenEndpoint, plain.RegistrationEndpoint}; !slices.Equal(got, []string{"https://as.example/authorize", "https://as.example/token", "https://as.example/register"}) {
		t.Errorf("what clients of 2025-03-26 expect without metadata: %v", got)
	}
	for _, path := range []string{"/", "/t", "/t/", "/authorize", "/t/nothing", "/.well-known/oauth-authorization-server", "/x/.well-known/openid-configuration"} {
		if w := p.do(httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := p.do(httptest.NewRequest(http.MethodGet, "/t/jwks", nil)); strings.Contains(w.Body.String(), `"d"`) || !strings.Contains(w.Body.String(), `"kid"`) {
		t.Errorf("%s", w.Body)
	}
}

// What gets no redirect, since nobody knows that it is the client's.
func TestAuthServerNeverRedirectsElsewhere(t *testing.T) {
	shows(t, "auth.redirect.as-exact", "auth.redirect.as-untrusted", "auth.comm.redirect")
	p := newAuthProbe(t, nil)
	for _, redirect := range []string{"-", "", "https://evil.example/", probeRedirect + "/", probeRedirect + "?x=y", probeRedirect + "#f", "https://APP.example/back", "http://app.example/back", "https://app.example:443/back",
		"http://127.0.0.1/cb2", "http://127.0.0.2/cb", "https://127.0.0.1/cb", "http://127.0.0.1:1/cb?x", "http://[::1]:1/cb", "http://localhost:99/cb", "com.example.app:/other", "javascript:alert(1)"} {
		if answer, location, page := p.ask("redirect_uri", redirect); answer != nil || !strings.HasPrefix(page, "400") {
			t.Errorf("%q: %v to %s", redirect, answer, location)
		}
	}
	for _, id := range []string{"-", "", "nobody", "PUBLIC", "https://127.0.0.1/client", "http://example.com/c"} {
		if answer, _, _ := p.ask("client_id", id); answer != nil {
			t.Errorf("client %q: %v", id, answer)
		}
	}
	for redirect, where := range map[string]string{"http://127.0.0.1:4321/cb": "http://127.0.0.1:4321/cb", "http://127.0.0.1/cb": "http://127.0.0.1/cb", "http://localhost/cb": "http://localhost/cb", "com.example.app:/cb": "com.example.app:/cb"} {
		if answer, location, page := p.ask("redirect_uri", redirect); answer.Get("code") == "" || location != where {
			t.Errorf("%s: %v to %s %s", redirect, answer, location, page)
		}
	}
	if answer, _, _ := p.ask("client_id", "secret", "redirect_uri", probeRedirect+"?a=b"); answer.Get("a") != "b" || answer.Get("code") == "" {
		t.Errorf("the client's own query: %v", answer)
	}
	w := p.do(httptest.NewRequest(http.MethodGet, "/t/authorize?client_id=public&client_id=public&redirect_uri="+url.QueryEscape(probeRedirect), nil))
	if w.Code != 400 {
		t.Errorf("a parameter twice: %d", w.Code)
	}
}

// What is wrong with a request whose client is known goes to the client, with the
// issuer's name.
func TestAuthServerRefusesAuthorizations(t *testing.T) {
	shows(t, "auth.iss.as-include", "auth.pkce")
	p := newAuthProbe(t, nil)
	for _, c := range []struct{ name, value, code string }{
		{"response_type", "token", "unsupported_response_type"}, {"response_type", "-", "unsupported_response_type"}, {"code_challenge", "-", "invalid_request"}, {"code_challenge", "short", "invalid_request"},
		{"code_challenge_method", "plain", "invalid_request"}, {"code_challenge_method", "-", "invalid_request"}, {"resource", "-", "invalid_target"}, {"resource", "https://rs.example/none", "invalid_target"},
		{"resource", "https://rs.example/mc", "invalid_target"}, {"scope", "read secret", "invalid_scope"}, {"scope", "write", "access_denied"},
	} {
		answer, location, page := p.ask(c.name, c.value)
		if answer.Get("error") != c.code || answer.Get("iss") != "https://as.example/t" || answer.Get("state") != "st" || answer.Has("code") || location != probeRedirect {
			t.Errorf("%s=%s: %v to %s %s", c.name, c.value, answer, location, page)
		}
	}
	answer, _, _ := p.ask("state", "-", "scope", "-")
	if answer.Has("state") || answer.Get("code") == "" || answer.Get("iss") == "" {
		t.Errorf("without state: %v", answer)
	}
	if answer, _, _ := newAuthProbe(t, func(o *AuthServerOptions) { o.Resources = o.Resources[:1] }).ask("resource", "-"); answer.Get("code") == "" {
		t.Errorf("a client of before, where there is one resource: %v", answer)
	}
}

func TestAuthServerCodes(t *testing.T) {
	shows(t, "auth.as.oauth21", "auth.token.short-lived")
	p := newAuthProbe(t, nil)
	for _, c := range []struct {
		changes []string
		status  int
		code    string
	}{
		{[]string{"code_verifier", "-"}, 400, "invalid_grant"}, {[]string{"code_verifier", strings.Repeat("a", 64)}, 400, "invalid_grant"}, {[]string{"code_verifier", "short"}, 400, "invalid_grant"},
		{[]string{"redirect_uri", "https://app.example/other"}, 400, "invalid_grant"}, {[]string{"resource", "https://rs.example/other"}, 400, "invalid_target"}, {[]string{"code", "x"}, 400, "invalid_grant"},
		{[]string{"client_id", "nobody"}, 401, "invalid_client"}, {[]string{"client_id", "-"}, 401, "invalid_client"}, {[]string{"client_id", "bound"}, 400, "invalid_dpop_proof"}, {[]string{"grant_type", "password"}, 400, "unsupported_grant_type"},
		{[]string{"grant_type", "client_credentials"}, 400, "unauthorized_client"}, {[]string{"client_secret", "guess"}, 401, "invalid_client"},
	} {
		if status, answer := p.trade(p.code(), c.changes...); status != c.status || answer["error"] != c.code {
			t.Errorf("%v: %d %v", c.changes, status, answer)
		}
	}
	code := p.code()
	status, answer := p.trade(code)
	if status != 200 || answer["token_type"] != "Bearer" || answer["scope"] != "read" || answer["expires_in"] != 600.0 || answer["refresh_token"] == nil {
		t.Fatalf("%d %v", status, answer)
	}
	info, err := p.s.Verify(context.Background(), answer["access_token"].(string))
	if err != nil || info.Subject != "ada" || info.ClientID != "public" || !slices.Equal(info.Audience, []string{"https://rs.example/mcp"}) {
		t.Errorf("%+v %v", info, err)
	}
	// The same code again: and what came of it is over.
	if status, again := p.trade(code); status != 400 || again["error"] != "invalid_grant" {
		t.Errorf("%d %v", status, again)
	}
	if status, refreshed := p.post("/token", "", "grant_type", "refresh_token", "client_id", "public", "refresh_token", answer["refresh_token"].(string)); status != 400 {
		t.Errorf("the tokens of a code that was used twice live on: %v", refreshed)
	}
	// Many at once: one gets a token.
	code = p.code()
	var done sync.WaitGroup
	var mu sync.Mutex
	good := 0
	for range 20 {
		done.Add(1)
		go func() {
			defer done.Done()
			if status, _ := p.trade(code); status == 200 {
				mu.Lock()
				good++
				mu.Unlock()
			}
		}()
	}
	if done.Wait(); good > 1 {
		t.Errorf("one code gave %d tokens", good)
	}
}

func TestAuthServerRefreshTokens(t *testing.T) {
	shows(t, "auth.token.rotate", "auth.token.rotate-2025-03")
	p := newAuthProbe(t, nil)
	tokens := func() map[string]any {
		_, answer := p.trade(p.code("scope", "read"))
		return answer
	}
	refresh := func(token any, fields ...string) (int, map[string]any) {
		return p.post("/token", "", append([]string{"grant_type", "refresh_token", "client_id", "public", "refresh_token", token.(string)}, fields...)...)
	}
	first := tokens()
	if status, a := refresh(first["refresh_token"], "scope", "write"); status != 400 || a["error"] != "invalid_scope" {
		t.Errorf("more scopes: %d %v", status, a)
	}
	if status, a := refresh(first["refresh_token"], "resource", "https://rs.example/other"); status != 400 || a["error"] != "invalid_target" {
		t.Errorf("another resource: %d %v", status, a)
	}
	if status, a := p.post("/token", "secret:s3cret", "grant_type", "refresh_token", "refresh_token", first["refresh_token"].(string)); status != 400 {
		t.Errorf("another client: %d %v", status, a)
	}
	status, second := refresh(first["refresh_token"], "resource", "https://rs.example/mcp")
	if status != 200 || second["refresh_token"] == first["refresh_token"] {
		t.Fatalf("%d %v", status, second)
	}
	if status, _ := refresh(first["refresh_token"]); status != 400 {
		t.Error("a refresh token is good twice")
	}
	if status, _ := refresh(second["refresh_token"]); status != 400 {
		t.Error("the family outlives the reuse")
	}
	third := tokens()
	if status, _ := p.post("/revoke", "", "client_id", "public", "token", third["refresh_token"].(string)); status != 200 {
		t.Errorf("revoke: %d", status)
	}
	if status, _ := refresh(third["refresh_token"]); status != 400 {
		t.Error("a revoked token is good")
	}
	fourth := tokens()
	access := fourth["access_token"].(string)
	p.post("/revoke", "secret:s3cret", "token", access)
	if _, err := p.s.Verify(context.Background(), access); err != nil {
		t.Error("another client revoked it")
	}
	if _, a := p.post("/introspect", "secret:s3cret", "token", access); a["active"] != true || a["sub"] != "ada" {
		t.Errorf("introspected: %v", a)
	}
	p.post("/revoke", "", "client_id", "public", "token", access)
	if _, a := p.post("/introspect", "secret:s3cret", "token", access); len(a) != 1 || a["active"] != false {
		t.Errorf("introspected: %v", a)
	}
	if status, _ := p.post("/introspect", "", "client_id", "public", "token", access); status != 401 {
		t.Errorf("anybody may ask about tokens: %d", status)
	}
}

func TestAuthServerCredentials(t *testing.T) {
	p := newAuthProbe(t, nil)
	cc := []string{"grant_type", "client_credentials", "resource", "https://rs.example/mcp", "scope", "read write"}
	for _, c := range []struct {
		basic  string
		fields []string
		status int
	}{
		{"secret:s3cret", nil, 200}, {"", []string{"client_id", "secret", "client_secret", "s3cret"}, 200}, {"secret:s3creT", nil, 401}, {"secret:", nil, 401}, {"nobody:x", nil, 401}, {"", []string{"client_id", "secret"}, 401},
		{"secret:s3cret", []string{"client_secret", "s3cret"}, 400}, {"secret:s3cret", []string{"client_id", "public"}, 401}, {"", []string{"client_id", "public"}, 400}, {"secret:s3cret", []string{"scope", "read"}, 400},
		{"", []string{"client_assertion_type", assertionType, "client_assertion", "x.y.z"}, 401},
	} {
		status, answer := p.post("/token", c.basic, append(slices.Clone(cc), c.fields...)...)
		if status != c.status || status == 200 && (answer["scope"] != "read" || answer["refresh_token"] != nil) {
			t.Errorf("%q %v: %d %v", c.basic, c.fields, status, answer)
		}
	}
	p.fail = func(r *http.Request) error { return errors.New("slowly") }
	if status, answer := p.post("/token", "secret:s3cret", cc...); status != 429 {
		t.Errorf("%d %v", status, answer)
	}
	p.fail = nil
	for name, r := range map[string]*http.Request{
		"JSON": httptest.NewRequest(http.MethodPost, "/t/token", strings.NewReader("{}")), "long": httptest.NewRequest(http.MethodPost, "/t/token", strings.NewReader("a="+strings.Repeat("x", maxOAuthBody))), "malformed": httptest.NewRequest(http.MethodPost, "/t/token", strings.NewReader("%zz=%")),
		"GET": httptest.NewRequest(http.MethodGet, "/t/token?grant_type=client_credentials", nil),
	} {
		r.Header.Set("Content-Type", map[bool]string{true: "application/json", false: formType}[name == "JSON"])
		if w := p.do(r); w.Code < 400 || w.Code > 413 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestAuthServerRegistration(t *testing.T) {
	shows(t, "auth.dcr.support", "auth.redirect.registered", "auth.comm.redirect")
	p := newAuthProbe(t, nil)
	register := func(doc string) (int, map[string]any) {
		r := httptest.NewRequest(http.MethodPost, "/t/register", strings.NewReader(doc))
		r.Header.Set("Content-Type", "application/json")
		return p.answer(r)
	}
	for doc, code := range map[string]string{
		`{"redirect_uris":["https://a.example/cb"],"client_name":"A","unknown":1,"logo_uri":null,"client_uri":""}`: "", `{"redirect_uris":["http://127.0.0.1/cb","http://localhost:3/cb","com.example:/x"],"application_type":"native"}`: "",
		`{"redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"client_secret_basic"}`: "", `{}`: "invalid_redirect_uri", `{"redirect_uris":[]}`: "invalid_redirect_uri", `{"redirect_uris":["http://a.example/cb"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/cb#x"]}`: "invalid_redirect_uri", `{"redirect_uris":["https://*.example/cb"]}`: "invalid_redirect_uri", `{"redirect_uris":["https://u:p@a.example/"]}`: "invalid_redirect_uri", `{"redirect_uris":["javascript:alert(1)"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["http://localhost/cb"],"application_type":"web"}`: "invalid_redirect_uri", `{"redirect_uris":["https://a.example/"],"application_type":"x"}`: "invalid_client_metadata", `{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"private_key_jwt"}`: "invalid_client_metadata", `{"redirect_uris":["https://a.example/"],"redirect_uris":["https://b.example/"]}`: "invalid_client_metadata", `[]`: "invalid_client_metadata", `{`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"client_name":"` + strings.Repeat("x", 201) + `"}`: "invalid_client_metadata",
	} {
		status, answer := register(doc)
		if code == "" {
			if status != 201 || answer["client_id"] == "" || (answer["client_secret"] != nil) != strings.Contains(doc, "secret_basic") {
				t.Errorf("%s: %d %v", doc, status, answer)
			}
		} else if status != 400 || answer["error"] != code {
			t.Errorf("%s: %d %v", doc, status, answer)
		}
	}
	closed := newAuthProbe(t, func(o *AuthServerOptions) { o.Registration = false })
	if w := closed.do(httptest.NewRequest(http.MethodPost, "/t/register", strings.NewReader("{}"))); w.Code != 404 || closed.s.Metadata().RegistrationEndpoint != "" {
		t.Errorf("who must not register can: %d", w.Code)
	}
}

// Clients whose id is the URL of a document.
func TestAuthServerFetchesClients(t *testing.T) {
	shows(t, "auth.cimd.as", "auth.cimd.as-fetch", "auth.cimd.as-validate", "auth.cimd.as-redirect", "auth.cimd.as-security", "auth.cimd.draft", "auth.cimd.id-match", "auth.cimd.properties")
	fetches := make(map[string]int)
	var docs *httptest.Server
	docs = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches[r.URL.Path]++
		good := fmt.Sprintf(`{"client_id":"%s%s","client_name":"Doc","redirect_uris":["%s"]`, docs.URL, r.URL.Path, probeRedirect)
		switch r.URL.Path {
		case "/good":
			w.Header().Set("Cache-Control", "public, max-age=600")
			io.WriteString(w, good+"}")
		case "/twice":
			io.WriteString(w, good+`,"redirect_uris":["https://evil.example/"]}`)
		case "/secret":
			io.WriteString(w, good+`,"token_endpoint_auth_method":"client_secret_basic"}`)
		case "/other":
			io.WriteString(w, strings.Replace(good, "/other", "/good", 1)+"}")
		case "/nameless":
			io.WriteString(w, strings.Replace(good, `"Doc"`, `""`, 1)+"}")
		case "/html":
			io.WriteString(w, "<html>")
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
		default:
			w.WriteHeader(404)
		}
	}))
	defer docs.Close()
	p := newAuthProbe(t, func(o *AuthServerOptions) { o.Issuer, o.Client = "http://127.0.0.1:1/t", docs.Client() })
	for path, ok := range map[string]bool{"/good": true, "/twice": false, "/secret": false, "/other": false, "/nameless": false, "/html": false, "/none": false, "/moved": false, "": false, "/": false, "/a/../good": false} {
		for range 2 {
			if answer, _, page := p.ask("client_id", docs.URL+path); (answer.Get("code") != "") != ok {
				t.Errorf("%q: %v %s", path, answer, page)
			}
		}
	}
	if fetches["/good"] != 3 { // once for itself, twice redirected to
		t.Errorf("a document that may be kept was fetched %d times", fetches["/good"])
	}
	if answer, _, _ := p.ask("client_id", docs.URL+"/good", "redirect_uri", "https://evil.example/"); answer != nil {
		t.Error("redirected to where the document does not say")
	}
	if answer, _, _ := newAuthProbe(t, func(o *AuthServerOptions) { o.Client = docs.Client() }).ask("client_id", docs.URL+"/good"); answer != nil {
		t.Error("a public server fetches from a loopback address")
	}
	if answer, _, _ := newAuthProbe(t, func(o *AuthServerOptions) {
		o.Issuer, o.Client, o.NoClientDocuments = "http://127.0.0.1:1/t", docs.Client(), true
	}).ask("client_id", docs.URL+"/good"); answer != nil {
		t.Error("documents are off")
	}
	for control, want := range map[string]time.Duration{"": time.Minute, "max-age=5": time.Minute, "max-age=600": 10 * time.Minute, "Max-Age=99999": time.Hour, "no-store": time.Minute, "max-age=x": time.Minute} {
		if got := cacheTime(control); got != want {
			t.Errorf("%q: %v", control, got)
		}
	}
}

// Assertions of issuers, and what is wrong with them.
func TestAuthServerTakesTrustedAssertions(t *testing.T) {
	shows(t, "ext.auth.ema.as-claims", "ext.auth.ema.as-client", "ext.auth.ema.as-replay", "ext.auth.ema.as-resource", "ext.auth.ema.as-signature", "ext.auth.ema.as-typ", "ext.auth.ema.as-token-audience", "ext.auth.ema.scopes", "ext.auth.ema.jag-short", "ext.auth.wif.as-validate", "ext.auth.wif.as-keys")
	key := newKey(t)
	idp := newIssuer(t, key)
	stranger := newIssuer(t, newKey(t))
	forger := &issuerServer{url: idp.url, key: newKey(t)}
	p := newAuthProbe(t, func(o *AuthServerOptions) {
		o.TrustedIssuers = []TrustedIssuer{{Issuer: idp.url, JWKSURL: idp.url + "/jwks", Workloads: func(_ context.Context, subject string, claims json.RawMessage) (string, []string, error) {
			if subject == "bad" || !json.Valid(claims) {
				return "", nil, errors.New("no")
			}
			return "w-" + subject, []string{"read"}, nil
		}}}
	})
	jag := func(i *issuerServer, change func(*jwtClaims)) string {
		c := &jwtClaims{Sub: "ada", Aud: stringOrSet{"https://as.example/t"}, ClientID: "secret", Resource: stringOrSet{"https://rs.example/mcp"}, Scope: "read admin"}
		if change != nil {
			change(c)
		}
		return i.sign(t, "oauth-id-jag+jwt", c)
	}
	send := func(assertion string, fields ...string) (int, map[string]any) {
		return p.post("/token", "secret:s3cret", append([]string{"grant_type", grantJWT, "assertion", assertion}, fields...)...)
	}
	good := jag(idp, nil)
	status, answer := send(good, "scope", "read write")
	if status != 200 || answer["scope"] != "read" || answer["refresh_token"] != nil {
		t.Errorf("%d %v", status, answer)
	} else if info, err := p.s.Verify(context.Background(), answer["access_token"].(string)); err != nil || info.Subject != "ada" || info.Audience[0] != "https://rs.example/mcp" {
		t.Errorf("%+v %v", info, err)
	}
	for name, assertion := range map[string]string{
		"again": good, "a stranger's": jag(stranger, nil), "forged": jag(forger, nil), "for another server": jag(idp, func(c *jwtClaims) { c.Aud = stringOrSet{"https://other"} }),
		"for the token endpoint": jag(idp, func(c *jwtClaims) { c.Aud = stringOrSet{"https://as.example/t/token"} }), "for two": jag(idp, func(c *jwtClaims) { c.Aud = append(c.Aud, "https://other") }),
		"another client's": jag(idp, func(c *jwtClaims) { c.ClientID = "public" }), "nobody's": jag(idp, func(c *jwtClaims) { c.Sub = "" }), "expired": jag(idp, func(c *jwtClaims) { c.Exp = nowPlus(-40) }),
		"for years": jag(idp, func(c *jwtClaims) { c.Exp = nowPlus(1 << 26) }), "for another resource": jag(idp, func(c *jwtClaims) { c.Resource = stringOrSet{"https://rs.example/none"} }),
		"not an ID-JAG, for a bad workload": idp.sign(t, "JWT", &jwtClaims{Sub: "bad", Aud: stringOrSet{"https://as.example/t"}}), "no JWT": "x", "": "",
	} {
		status, answer := send(assertion)
		if name == "not an ID-JAG, for a bad workload" {
			status, answer = send(assertion, "resource", "https://rs.example/mcp")
		}
		if status != 400 || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	if status, answer := send(jag(idp, nil), "resource", "https://rs.example/other"); status != 400 || answer["error"] != "invalid_grant" {
		t.Errorf("another resource than the assertion's: %d %v", status, answer)
	}
	if status, answer := p.post("/token", "", "grant_type", grantJWT, "assertion", jag(idp, nil)); status != 401 {
		t.Errorf("without its client: %d %v", status, answer)
	}
	workload := idp.sign(t, "JWT", &jwtClaims{Sub: "pod", Aud: stringOrSet{"https://as.example/t/token"}})
	for i, want := range []int{200, 400} {
		if status, answer := p.post("/token", "", "grant_type", grantJWT, "assertion", workload, "resource", "https://rs.example/mcp"); status != want {
			t.Errorf("a workload, time %d: %d %v", i, status, answer)
		}
	}
}

func TestAuthServerProofs(t *testing.T) {
	shows(t, "ext.auth.dpop.as-bound", "ext.auth.dpop.as-binding", "ext.auth.dpop.token-request")
	p := newAuthProbe(t, func(o *AuthServerOptions) { o.ProofNonces = true })
	key := newKey(t)
	public, _ := webKeyOf(key.Public())
	at, _ := url.Parse("https://as.example/t/token")
	send := func(nonce string, where *url.URL) (int, map[string]any, string) {
		code := p.code("client_id", "bound")
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"bound"}, "code": {code}, "redirect_uri": {probeRedirect}, "code_verifier": {probeVerifier}}
		r := httptest.NewRequest(http.MethodPost, "/t/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", formType)
		proof, err := signProof(key, "POST", where, "", nonce)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("DPoP", proof)
		w := p.do(r)
		var answer map[string]any
		json.Unmarshal(w.Body.Bytes(), &answer)
		return w.Code, answer, w.Header().Get("DPoP-Nonce")
	}
	status, answer, nonce := send("", at)
	if status != 400 || answer["error"] != "use_dpop_nonce" || nonce == "" {
		t.Errorf("without a nonce: %d %v", status, answer)
	}
	if status, answer, _ := send("old", at); status != 400 || answer["error"] != "use_dpop_nonce" {
		t.Errorf("with another nonce: %d %v", status, answer)
	}
	if status, answer, _ := send(nonce, &url.URL{Scheme: "https", Host: "rs.example", Path: "/mcp"}); status != 400 || answer["error"] != "invalid_dpop_proof" {
		t.Errorf("for another server: %d %v", status, answer)
	}
	status, answer, _ = send(nonce, at)
	if status != 200 || answer["token_type"] != "DPoP" {
		t.Fatalf("%d %v", status, answer)
	}
	if info, err := p.s.Verify(context.Background(), answer["access_token"].(string)); err != nil || info.KeyThumbprint != public.thumbprint() {
		t.Errorf("%+v %v", info, err)
	}
}

// The page that asks: what it shows, and that only it can be answered.
func TestAuthConsentPage(t *testing.T) {
	shows(t, "auth.cimd.as-hostname", "auth.cimd.as-localhost")
	signedIn := true
	server := httptest.NewUnstartedServer(nil)
	var as *AuthServer
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { as.ServeHTTP(w, r) })
	server.Start()
	defer server.Close()
	as = NewAuthServer(AuthServerOptions{
		Issuer: server.URL, Resources: []string{"https://rs.example/mcp"},
		Clients: []AuthClient{{ClientMetadata: ClientMetadata{ClientID: "c", ClientName: "<b>App</b>", RedirectURIs: []string{"https://app.example/back", "http://127.0.0.1/cb"}}}},
		Consent: ConsentPage(func(w http.ResponseWriter, r *http.Request) (string, bool) {
			if !signedIn {
				http.Error(w, "sign in", http.StatusTeapot)
			}
			return "ada", signedIn
		}),
	})
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page := func(redirect string) string {
		return server.URL + "/authorize?response_type=code&client_id=c&scope=read&code_challenge_method=S256&code_challenge=" + tokenHash(probeVerifier) + "&redirect_uri=" + url.QueryEscape(redirect)
	}
	read := func(response *http.Response, err error) (string, *http.Response) {
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text), response
	}
	text, _ := read(browser.Get(page("https://app.example/back")))
	for _, part := range []string{"&lt;b&gt;App", "app.example", "https://rs.example/mcp", "read", "ada"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %s: %s", part, text)
		}
	}
	if strings.Contains(text, "your own computer") {
		t.Error("a warning where there is nothing to warn of")
	}
	local, _ := read(browser.Get(page("http://127.0.0.1:99/cb")))
	if !strings.Contains(local, "your own computer") || !strings.Contains(local, "127.0.0.1:99") {
		t.Errorf("no warning: %s", local)
	}
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(local)[1]
	for answer, want := range map[string]string{"allow": "code=", "deny": "error=access_denied"} {
		_, response := read(browser.PostForm(page("https://app.example/back"), url.Values{"token": {token}, "answer": {answer}}))
		if to := response.Header.Get("Location"); response.StatusCode != 303 || !strings.HasPrefix(to, "https://app.example/back?") || !strings.Contains(to, want) {
			t.Errorf("%s: %d %s", answer, response.StatusCode, to)
		}
	}
	for name, form := range map[string]url.Values{"without the token": {"answer": {"allow"}}, "with another": {"answer": {"allow"}, "token": {"x"}}} {
		if _, response := read(browser.PostForm(page("https://app.example/back"), form)); response.StatusCode != 403 {
			t.Errorf("%s: %d", name, response.StatusCode)
		}
	}
	if _, response := read(http.PostForm(page("https://app.example/back"), url.Values{"token": {token}, "answer": {"allow"}})); response.StatusCode != 403 {
		t.Errorf("another browser: %d", response.StatusCode)
	}
	signedIn = false
	if _, response := read(browser.Get(page("https://app.example/back"))); response.StatusCode != http.StatusTeapot {
		t.Errorf("nobody is signed in: %d", response.StatusCode)
	}
}

func TestAuthServerKeysRotate(t *testing.T) {
	p := newAuthProbe(t, nil)
	_, first := p.trade(p.code())
	if err := p.s.Rotate(newKey(t)); err != nil {
		t.Fatal(err)
	}
	_, second := p.trade(p.code())
	for _, answer := range []map[string]any{first, second} {
		if _, err := p.s.Verify(context.Background(), answer["access_token"].(string)); err != nil {
			t.Error(err)
		}
	}
	var set struct{ Keys []webKey }
	json.Unmarshal(p.s.keySet(), &set)
	if len(set.Keys) != 2 || set.Keys[0].Kid == set.Keys[1].Kid {
		t.Errorf("%+v", set)
	}
	p.s.keys[1].until = time.Now().Add(-time.Second)
	if _, err := p.s.Verify(context.Background(), first["access_token"].(string)); err == nil {
		t.Error("a key is good for ever")
	}
}

func TestAuthServerOptionsThatCannotBe(t *testing.T) {
	for _, opts := range []AuthServerOptions{{}, {Issuer: "https://as.example"}, {Issuer: "http://as.example", Resources: []string{"https://x"}}, {Issuer: "https://as.example?x", Resources: []string{"https://x"}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", opts)
				}
			}()
			NewAuthServer(opts)
		}()
	}
	m := &memoryAuth{entries: make(map[string]memoryEntry)}
	ctx := context.Background()
	if added, _ := m.Add(ctx, "a", []byte("1"), time.Now().Add(-time.Second)); !added {
		t.Error("not added")
	}
	if added, _ := m.Add(ctx, "a", []byte("2"), time.Time{}); !added {
		t.Error("what has expired is in the way")
	}
	if added, _ := m.Add(ctx, "a", []byte("3"), time.Time{}); added {
		t.Error("added twice")
	}
	if v, _ := m.Take(ctx, "a"); string(v) != "2" {
		t.Errorf("%s", v)
	}
	if v, _ := m.Get(ctx, "a"); v != nil {
		t.Errorf("%s", v)
	}
	m.clients = maxRegistered
	if added, err := m.Add(ctx, clientPrefix+"x", nil, time.Time{}); added || err == nil {
		t.Error("there is no end of clients")
	}
	if added, _ := m.Add(ctx, "code x", nil, time.Time{}); !added {
		t.Error("clients leave no room for codes")
	}
}

// What the server remembers goes with the tokens: nothing stays for good but
// clients.
func TestAuthServerForgets(t *testing.T) {
	p := newAuthProbe(t, nil)
	_, answer := p.trade(p.code())
	p.post("/token", "", "grant_type", "refresh_token", "client_id", "public", "refresh_token", answer["refresh_token"].(string))
	p.post("/token", "", "grant_type", "refresh_token", "client_id", "public", "refresh_token", answer["refresh_token"].(string)) // again: the family ends
	for key, e := range p.s.store.(*memoryAuth).entries {
		if e.expires.IsZero() {
			t.Errorf("%s stays for good", key)
		}
	}
}
