//go:build !mcp_nohttp

package mcp

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A realm is all three parties of OAuth, over real HTTP on loopback: an
// authorization server, a protected MCP server and what clients need.
type realm struct {
	t      *testing.T
	as     *AuthServer
	issuer string
	rs     *httptest.Server
	url    string // of the MCP server
	log    *logLines

	prompts atomic.Int64 // pages that were opened
	wire    *wireLog
}

// A logLines keeps what is logged, to look for secrets in it.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A wireLog notes the requests to the authorization server: path and form.
type wireLog struct {
	mu   sync.Mutex
	seen []wireEntry
}

type wireEntry struct {
	path   string
	form   url.Values
	header http.Header
}

func (w *wireLog) of(path string) (found []wireEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.seen {
		if strings.HasSuffix(e.path, path) {
			found = append(found, e)
		}
	}
	return found
}

func newRealm(t *testing.T, change func(*AuthServerOptions, *BearerOptions)) *realm {
	t.Helper()
	leakCheck(t)
	r := &realm{t: t, log: new(logLines), wire: new(wireLog)}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var as, rs http.Handler
	asServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		entry := wireEntry{path: req.URL.Path, form: req.URL.Query(), header: req.Header}
		if req.Method == http.MethodPost && strings.HasPrefix(req.Header.Get("Content-Type"), formType) {
			body := make([]byte, 1<<20)
			n := 0
			for {
				m, err := req.Body.Read(body[n:])
				if n += m; err != nil {
					break
				}
			}
			entry.form, _ = url.ParseQuery(string(body[:n]))
			req.Body = bodyOf(string(body[:n]))
		}
		r.wire.mu.Lock()
		r.wire.seen = append(r.wire.seen, entry)
		r.wire.mu.Unlock()
		as.ServeHTTP(w, req)
	}))
	r.rs = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { rs.ServeHTTP(w, req) }))
	r.issuer, r.url = asServer.URL, r.rs.URL+"/mcp"
	opts := AuthServerOptions{
		Issuer: r.issuer, Resources: []string{r.url}, Scopes: []string{"read", "write", "admin"}, Logger: log,
		Consent: func(w http.ResponseWriter, req *http.Request, a *Authorization) { a.Approve(w, req, "ada", a.Scopes) },
	}
	bearer := BearerOptions{Resource: r.url, Scopes: []string{"read"}, Logger: log}
	if change != nil {
		change(&opts, &bearer)
	}
	r.as = NewAuthServer(opts)
	as = r.as
	if bearer.Verify == nil {
		bearer.Verify = r.as.Verify
	}
	s := NewServer(Implementation{Name: "rs", Version: "1"}, &ServerOptions{Logger: log})
	AddTool(s, Tool{Name: "whoami"}, func(ctx context.Context, req *Request, _ struct{}) (string, error) {
		info := req.TokenInfo()
		if info != TokenInfoFrom(ctx) {
			return "", errors.New("two tokens")
		}
		return info.Subject + " of " + info.ClientID + ": " + strings.Join(info.Scopes, " "), nil
	})
	AddTool(s, Tool{Name: "write"}, func(context.Context, *Request, struct{}) (string, error) { return "written", nil })
	s.Use(RequireScopes(func(req *Request) []string {
		if req.Name == "write" {
			return []string{"write"}
		}
		return nil
	}))
	h := NewHTTPHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", RequireBearer(bearer)(h))
	meta := ResourceMetadataHandler(ResourceMetadata{Resource: r.url, AuthorizationServers: []string{r.issuer}, ScopesSupported: []string{"read"}})
	mux.Handle("/.well-known/oauth-protected-resource", meta)
	mux.Handle("/.well-known/oauth-protected-resource/", meta)
	rs = mux
	t.Cleanup(func() {
		h.Shutdown(context.Background())
		r.rs.Close()
		asServer.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return r
}

type stringBody struct{ *strings.Reader }

func (stringBody) Close() error { return nil }

func bodyOf(text string) stringBody { return stringBody{strings.NewReader(text)} }

// visit is a browser whose user agrees to everything.
func (r *realm) visit(ctx context.Context, page string) error {
	r.prompts.Add(1)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	readOut(response)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the page says %d", response.StatusCode)
	}
	return nil
}

// connect opens a session with an OAuth, at the latest revision or at one.
func (r *realm) connect(auth *OAuth, versions ...string) (*ClientSession, error) {
	r.t.Helper()
	if auth.Open == nil && auth.Prompt == nil {
		auth.Open = r.visit
	}
	if auth.Logger == nil {
		auth.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: versions})
	cs, err := c.Connect(context.Background(), &HTTP{URL: r.url, Auth: auth, Logger: auth.Logger})
	if err == nil {
		r.t.Cleanup(func() { cs.Close() })
	}
	return cs, err
}

func (r *realm) mustConnect(auth *OAuth, versions ...string) *ClientSession {
	r.t.Helper()
	cs, err := r.connect(auth, versions...)
	if err != nil {
		r.t.Fatal(err)
	}
	return cs
}

func callFor(t *testing.T, cs *ClientSession, tool, want string) {
	t.Helper()
	if got, err := CallTool[string](context.Background(), cs, tool, nil); err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%s: %q, %v", tool, got, err)
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keySetOf(t *testing.T, keys ...crypto.Signer) json.RawMessage {
	var set struct {
		Keys []webKey `json:"keys"`
	}
	for _, key := range keys {
		k, err := webKeyOf(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, k)
	}
	text, _ := json.Marshal(&set)
	return text
}

// Our client, our resource server and our authorization server, with every way
// to be known and to authenticate, with and without proof of possession.
func TestAuthPartiesTogether(t *testing.T) {
	shows(t, "auth.as.oauth21", "auth.as.metadata", "auth.as.metadata-2025-06", "auth.as.metadata-client-2025-06", "auth.cimd.client", "auth.cimd.as", "auth.cimd.as-fetch",
		"auth.prereg", "auth.dcr.support", "auth.reg.client-id", "auth.reg.priority", "auth.resource.send", "auth.resource.identify", "auth.pkce", "auth.pkce.s256", "auth.token.header", "auth.token.every-request",
		"auth.redirect.registered", "auth.redirect.state", "auth.prm.client", "auth.prm.server", "auth.prm.as-list", "auth.iss.as-include", "auth.iss.as-advertise", "auth.iss.supported-present",
		"ext.auth.dpop.as-binding", "ext.auth.dpop.token-request", "ext.auth.dpop.proof", "ext.auth.dpop.scheme", "ext.auth.dpop.server-validate", "ext.auth.dpop.as-metadata", "ext.auth.dpop.modern-algs", "ext.auth.dpop.server-audience")
	for _, known := range []string{"registered before", "by document", "registers"} {
		for _, method := range []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"} {
			for _, proof := range []bool{false, true} {
				if known == "by document" && strings.HasPrefix(method, "client_secret") || known == "registers" && method != "none" {
					continue // there is nobody to keep a secret with; what is registered is what the server prefers
				}
				t.Run(fmt.Sprintf("%s, %s, proof %v", known, method, proof), func(t *testing.T) {
					key := newKey(t)
					meta := ClientMetadata{ClientID: "me", ClientName: "Me", RedirectURIs: []string{"http://127.0.0.1/callback"}, GrantTypes: []string{"authorization_code", "refresh_token"}, TokenEndpointAuthMethod: method}
					if method == "private_key_jwt" {
						meta.JWKS = keySetOf(t, key)
					}
					docs := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						doc := meta
						doc.ClientID = "https://" + r.Host + "/client.json"
						json.NewEncoder(w).Encode(&doc)
					}))
					defer docs.Close()
					auth := &OAuth{ClientName: "Me"}
					r := newRealm(t, func(o *AuthServerOptions, b *BearerOptions) {
						o.Client, b.ProofRequired = docs.Client(), proof
						switch known {
						case "registered before":
							c := AuthClient{ClientMetadata: meta}
							auth.ClientID, auth.Issuer = "me", o.Issuer
							if strings.HasPrefix(method, "client_secret") {
								c.Secret, auth.ClientSecret, auth.AuthMethod = "s3cret:&%", "s3cret:&%", method
							}
							o.Clients = []AuthClient{c}
						case "by document":
							auth.ClientMetadataURL = docs.URL + "/client.json"
						case "registers":
							o.Registration = true
						}
					})
					if method == "private_key_jwt" {
						auth.ClientKey = key
					}
					cs := r.mustConnect(auth)
					callFor(t, cs, "whoami", "ada of ")
					old := r.mustConnect(auth, Version20251125)
					callFor(t, old, "whoami", "ada of ")
					if n := r.prompts.Load(); n != 1 {
						t.Errorf("%d pages were opened", n)
					}
					for path, n := range map[string]int{"/authorize": 1, "/token": 1} {
						seen := r.wire.of(path)
						if len(seen) != n || seen[0].form.Get("resource") != r.url {
							t.Errorf("%s: %+v", path, seen)
						}
					}
					if form := r.wire.of("/authorize")[0].form; form.Get("code_challenge_method") != "S256" || form.Get("state") == "" || form.Get("scope") != "read" {
						t.Errorf("asked for %v", form)
					}
					s := auth.state(cs.mustURL(r.url))
					if s.token.Proof != proof || s.token.Refresh == "" {
						t.Errorf("the token is %+v", s.token)
					}
					checkNoSecrets(t, r, auth)
				})
			}
		}
	}
}

func (cs *ClientSession) mustURL(raw string) *url.URL { u, _ := url.Parse(raw); return u }

// checkNoSecrets looks for what must not be in logs.
func checkNoSecrets(t *testing.T, r *realm, auth *OAuth) {
	t.Helper()
	log := r.log.String()
	for _, s := range auth.states {
		for _, secret := range []string{s.token.Access, s.token.Refresh, auth.ClientSecret} {
			if secret != "" && strings.Contains(log, secret) {
				t.Errorf("a secret is in the log: %s", log)
			}
		}
	}
	for _, path := range []string{"/authorize", "/token"} {
		for _, e := range r.wire.of(path) {
			for _, name := range []string{"code", "code_verifier", "client_secret", "refresh_token", "client_assertion", "assertion"} {
				if v := e.form.Get(name); v != "" && strings.Contains(log, v) {
					t.Errorf("%s is in the log: %s", name, log)
				}
			}
		}
	}
}

// expire makes a token look old.
func (o *OAuth) expire(access string) {
	for _, s := range o.states {
		s.mu.Lock()
		s.token.Expires = s.token.Expires.AddDate(0, 0, -1)
		if access != "" {
			s.token.Access = access
		}
		s.mu.Unlock()
	}
}

func (o *OAuth) tokenOf(url *url.URL) savedToken {
	s := o.state(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

func registering(o *AuthServerOptions, _ *BearerOptions) { o.Registration = true }

func TestAuthRefreshes(t *testing.T) {
	shows(t, "auth.token.rotate", "auth.token.rotate-2025-03", "auth.refresh.no-assume", "auth.token.short-lived", "auth.refresh.grant-types")
	r := newRealm(t, registering)
	auth := &OAuth{}
	cs := r.mustConnect(auth)
	u := cs.mustURL(r.url)
	first := auth.tokenOf(u)
	auth.expire("")
	var calls sync.WaitGroup
	for range 20 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			callFor(t, cs, "whoami", "ada")
		}()
	}
	calls.Wait()
	second := auth.tokenOf(u)
	if n := len(r.wire.of("/token")); n != 2 || second.Refresh == first.Refresh || second.Access == first.Access {
		t.Errorf("%d requests for tokens", n)
	}
	if form := r.wire.of("/token")[1].form; form.Get("resource") != r.url || form.Get("grant_type") != "refresh_token" {
		t.Errorf("refreshed with %v", form)
	}
	// The server refuses the token though it has not expired: it is renewed.
	auth.expire("wrong." + second.Access)
	auth.state(u).token.Expires = second.Expires
	callFor(t, cs, "whoami", "ada")
	if n := r.prompts.Load(); n != 1 {
		t.Errorf("the user was asked %d times", n)
	}
	// Who uses a refresh token that was used ends the family; then the user is asked again.
	third := auth.tokenOf(u)
	auth.state(u).token.Refresh = first.Refresh
	auth.expire("")
	callFor(t, cs, "whoami", "ada")
	if n := r.prompts.Load(); n != 2 {
		t.Errorf("the user was asked %d times", n)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {third.Refresh}, "client_id": {r.wire.of("/token")[0].form.Get("client_id")}}
	if response, err := http.PostForm(r.issuer+"/token", form); err != nil || response.StatusCode != 400 {
		t.Errorf("the family lives on: %v %v", response, err)
	} else {
		readOut(response)
	}
	checkNoSecrets(t, r, auth)
}

func TestAuthStepsUp(t *testing.T) {
	shows(t, "auth.stepup.react", "auth.stepup.union", "auth.403.response", "auth.403.scopes", "auth.403.single", "auth.scope.authoritative", "auth.scope.least", "auth.scope.priority", "auth.scope.challenge", "auth.scope.no-relation")
	for _, version := range []string{Version20260728, Version20251125} {
		r := newRealm(t, registering)
		auth := &OAuth{}
		cs := r.mustConnect(auth, version)
		callFor(t, cs, "whoami", "ada of")
		callFor(t, cs, "write", "written")
		callFor(t, cs, "whoami", "ada of")
		asked := r.wire.of("/authorize")
		if len(asked) != 2 || asked[0].form.Get("scope") != "read" || asked[1].form.Get("scope") != "read write" {
			t.Errorf("%s: asked for %v", version, asked)
		}
	}
}

func TestAuthSessionsBelongToSubjects(t *testing.T) {
	shows(t, "secbp.session.bind", "secbp.session.no-auth", "secbp.session.random", "secbp.handle.bind", "secbp.handle.no-auth")
	subject := "ada"
	r := newRealm(t, func(o *AuthServerOptions, b *BearerOptions) {
		o.Registration = true
		o.Consent = func(w http.ResponseWriter, req *http.Request, a *Authorization) { a.Approve(w, req, subject, a.Scopes) }
	})
	ada, eve := &OAuth{}, &OAuth{}
	cs := r.mustConnect(ada, Version20251125)
	subject = "eve"
	r.mustConnect(eve, Version20251125)
	u := cs.mustURL(r.url)
	post := func(token, session string) int {
		req, _ := http.NewRequest(http.MethodPost, r.url, strings.NewReader(request("1", methodPing, "")))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set(headerSession, session)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		readOut(response)
		return response.StatusCode
	}
	session := cs.link.core.conn.conn.(*httpConn).session.id
	if got := []int{post(ada.tokenOf(u).Access, session), post(eve.tokenOf(u).Access, session), post("", session)}; !slices.Equal(got, []int{200, 404, 401}) {
		t.Errorf("the session of another: %v", got)
	}
}

// TestFault62ResourceEverywhere: authorization, code, refresh and client
// credentials name the same resource, byte by byte that of the metadata.
func TestFault62ResourceEverywhere(t *testing.T) {
	shows(t, "auth.resource.send", "auth.resource.identify")
	r := newRealm(t, func(o *AuthServerOptions, _ *BearerOptions) {
		o.Registration = true
		o.Clients = []AuthClient{{ClientMetadata: ClientMetadata{ClientID: "machine", GrantTypes: []string{"client_credentials"}}, Secret: "s3cret"}}
	})
	auth := &OAuth{}
	cs := r.mustConnect(auth)
	auth.expire("")
	callFor(t, cs, "whoami", "ada")
	callFor(t, r.mustConnect(&OAuth{ClientID: "machine", ClientSecret: "s3cret", Grant: ClientCredentials()}), "whoami", "machine")
	var grants []string
	for _, e := range append(r.wire.of("/authorize"), r.wire.of("/token")...) {
		grants = append(grants, e.form.Get("grant_type"))
		if got := e.form["resource"]; !slices.Equal(got, []string{r.url}) {
			t.Errorf("%v names %q", e.form, got)
		}
	}
	if !slices.Equal(grants, []string{"", "authorization_code", "refresh_token", "client_credentials"}) {
		t.Errorf("asked by %q", grants)
	}
}

// Machines get tokens by credentials, by the word of an identity provider and by
// that of their platform.
func TestAuthGrantsWithoutUser(t *testing.T) {
	shows(t, "ext.auth.cc.method", "ext.auth.cc.jwt-request", "ext.auth.cc.jwt-preferred", "ext.auth.cc.no-dcr", "ext.auth.cc.no-user", "ext.auth.cc.as-methods", "ext.auth.cc.as-algs", "ext.auth.cc.conform",
		"ext.auth.ema.exchange", "ext.auth.ema.audience", "ext.auth.ema.resource", "ext.auth.ema.grant", "ext.auth.ema.subject-type", "ext.auth.ema.no-actor", "ext.auth.ema.no-redirect", "ext.auth.ema.registered-client", "ext.auth.ema.client-auth",
		"ext.auth.ema.as-claims", "ext.auth.ema.as-client", "ext.auth.ema.as-signature", "ext.auth.ema.as-typ", "ext.auth.ema.as-token-audience", "ext.auth.ema.scopes", "ext.auth.ema.no-url-tokens",
		"ext.auth.wif.grant", "ext.auth.wif.as-metadata", "ext.auth.wif.as-validate", "ext.auth.wif.as-keys", "ext.auth.wif.no-registration", "ext.auth.wif.server", "ext.auth.wif.fresh", "ext.auth.wif.conform",
		"ext.auth.dpop.as-nonce", "ext.auth.ema.no-log")
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	idp := newIssuer(t, edKey)
	platform := newIssuer(t, rsaKey)
	machineKey := newKey(t)
	for name, grant := range map[string]func(o *OAuth, r *realm) *Grant{
		"secret": func(o *OAuth, r *realm) *Grant { o.ClientSecret = "s3cret"; return ClientCredentials() },
		"key": func(o *OAuth, r *realm) *Grant {
			o.ClientID, o.ClientKey = "keyed", machineKey
			return ClientCredentials()
		},
		"enterprise": func(o *OAuth, r *realm) *Grant {
			o.ClientSecret = "s3cret"
			idp.audience, idp.client = r.issuer, "machine"
			return EnterpriseManaged(EnterpriseOptions{TokenEndpoint: idp.url + "/token", ClientID: "at-idp", IDToken: func(context.Context) (string, error) { return "the-id-token", nil }})
		},
		"workload": func(o *OAuth, r *realm) *Grant {
			o.ClientID = ""
			return WorkloadIdentity(func(_ context.Context, audience string) (string, error) {
				return platform.sign(t, "JWT", &jwtClaims{Sub: "pod-7", Aud: stringOrSet{audience}}), nil
			})
		},
	} {
		for _, proof := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, proof %v", name, proof), func(t *testing.T) {
				r := newRealm(t, func(o *AuthServerOptions, b *BearerOptions) {
					b.ProofRequired, o.ProofNonces = proof, proof
					o.Clients = []AuthClient{
						{ClientMetadata: ClientMetadata{ClientID: "machine", GrantTypes: []string{"client_credentials"}}, Secret: "s3cret"},
						{ClientMetadata: ClientMetadata{ClientID: "keyed", GrantTypes: []string{"client_credentials"}, JWKS: keySetOf(t, machineKey)}},
					}
					o.TrustedIssuers = []TrustedIssuer{
						{Issuer: idp.url, JWKSURL: idp.url + "/jwks"},
						{Issuer: platform.url, JWKSURL: platform.url + "/jwks", Workloads: func(_ context.Context, subject string, _ json.RawMessage) (string, []string, error) {
							return "workload " + subject, []string{"read"}, nil
						}},
					}
				})
				auth := &OAuth{ClientID: "machine", Open: func(context.Context, string) error { return errors.New("there is no user") }}
				auth.Grant = grant(auth, r)
				cs := r.mustConnect(auth)
				want := map[string]string{"secret": "machine of machine: read", "key": "keyed of keyed: read", "enterprise": "user-1 of machine: read", "workload": "workload pod-7 of"}[name]
				callFor(t, cs, "whoami", want)
				if len(r.wire.of("/authorize"))+len(r.wire.of("/register")) > 0 {
					t.Error("a user or a registration was wanted")
				}
				for _, e := range r.wire.of("/token") {
					if e.form.Get("resource") != r.url || e.form.Has("actor_token") {
						t.Errorf("asked with %v", e.form)
					}
				}
				checkNoSecrets(t, r, auth)
			})
		}
	}
}

// An issuer vouches for others: an identity provider, or a platform.
type issuerServer struct {
	url              string
	key              crypto.Signer
	audience, client string
}

func newIssuer(t *testing.T, key crypto.Signer) *issuerServer {
	i := &issuerServer{key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jwks" {
			w.Write(keySetOf(t, key))
			return
		}
		r.ParseForm()
		if r.Form.Get("subject_token") != "the-id-token" || r.Form.Get("audience") != i.audience || r.Form.Get("requested_token_type") != typeIDJAG || r.Form.Get("subject_token_type") != typeIDToken || r.Form.Get("client_id") != "at-idp" {
			w.WriteHeader(400)
			w.Write([]byte(`{"error":"invalid_request"}`))
			return
		}
		jag := i.sign(t, "oauth-id-jag+jwt", &jwtClaims{Sub: "user-1", Aud: stringOrSet{i.audience}, ClientID: i.client, Resource: stringOrSet{r.Form.Get("resource")}, Scope: "read write"})
		json.NewEncoder(w).Encode(map[string]any{"issued_token_type": typeIDJAG, "access_token": jag, "token_type": "N_A", "expires_in": 300})
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// sign makes a token of the issuer; what the claims lack is filled in.
func (i *issuerServer) sign(t *testing.T, typ string, c *jwtClaims) string {
	if c.Iss == "" {
		c.Iss = i.url
	}
	if c.Exp == 0 {
		c.Exp, c.Iat = nowPlus(300), nowPlus(0)
	}
	if c.Jti == "" {
		c.Jti = randomText()
	}
	k, _ := webKeyOf(i.key.Public())
	token, err := signJWT(i.key, map[string]any{"typ": typ, "kid": k.Kid}, c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func nowPlus(seconds int64) numericDate { return numericDate(time.Now().Unix() + seconds) }
