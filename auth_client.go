//go:build !mcp_nohttp

package mcp

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file is the client's part of OAuth (2026-07-28 basic/authorization, and
// the authorization extensions).

// OAuth is an [Authorizer] for [HTTP.Auth]: when a server asks for a token, it
// finds out where tokens come from, makes the client known there, gets one,
// renews it, and asks for more scopes when the server does. Use a pointer, for
// any number of servers. The fields must not be changed once it is used.
//
// By default the user agrees in a browser: Open shows the page, and the answer
// comes to a listener on a loopback address. Who the client is, is decided in
// this order: ClientID if set, ClientMetadataURL if the authorization server
// takes such, and otherwise it registers.
type OAuth struct {
	// ClientID is the id of a client that is registered already, with its
	// ClientSecret or ClientKey if it has one. A key is on P-256, Ed25519 or
	// RSA, and the client authenticates with private_key_jwt.
	ClientID, ClientSecret string
	ClientKey              crypto.Signer
	// AuthMethod is how a client with a secret is registered to authenticate:
	// "client_secret_basic" or "client_secret_post"; "" means whichever the
	// authorization server supports, in this order.
	AuthMethod string
	// Issuer is the authorization server that ClientID is registered at. When
	// set, a server that wants tokens of another one is an error.
	Issuer string
	// ClientMetadataURL is an https URL with a path where the client's
	// [ClientMetadata] is published, its client_id being that URL.
	ClientMetadataURL string
	// ClientName is what users see of a client that registers.
	ClientName string
	// Scopes are asked for besides those that the server names.
	Scopes []string

	// Grant gets tokens without a user; nil means with one, in a browser.
	Grant *Grant
	// Open shows a page to the user, such as by starting a browser, without a
	// shell, and returns. It must be set where users agree, unless Prompt is.
	Open func(ctx context.Context, page string) error
	// Prompt takes the place of Open and of the listener: it sends the user to
	// the page and returns the query of the redirect to RedirectURL that comes
	// back.
	Prompt func(ctx context.Context, page string) (url.Values, error)
	// RedirectURL is where Prompt hears of the answer.
	RedirectURL string
	// PromptTime is how long the user has; 0 means 5 minutes.
	PromptTime time.Duration

	// ProofKey makes all tokens ones that need proof of possession (RFC 9449).
	// Without it that is so only where a server demands it, with keys of its own.
	ProofKey crypto.Signer
	// Tokens keeps tokens and registrations; nil means in memory, for as long as
	// the OAuth is.
	Tokens TokenStore
	// Client makes the requests to authorization servers. nil means one that
	// reaches public addresses, and those of a loopback address only if a server
	// there says so.
	Client *http.Client
	// Logger gets what is done, without secrets. nil logs nothing.
	Logger *slog.Logger

	mu     sync.Mutex
	memory TokenStore
	states map[string]*authState // by the URL of the MCP server
}

// A TokenStore keeps what must outlive a process: tokens and registrations,
// which are secrets. Keys are short texts. Its methods may be called
// concurrently.
type TokenStore interface {
	// Load returns what was saved, nil if there is nothing.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save keeps data; nil removes what is there.
	Save(ctx context.Context, key string, data []byte) error
}

// NewMemoryTokens returns a store that lives as long as the process.
func NewMemoryTokens() TokenStore { return &memoryTokens{data: make(map[string][]byte)} }

type memoryTokens struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (m *memoryTokens) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[key], nil
}

func (m *memoryTokens) Save(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data == nil {
		delete(m.data, key)
	} else {
		m.data[key] = slices.Clone(data)
	}
	return nil
}

// FileTokens returns a store in a file that only its owner can read. Every
// Save replaces the file as a whole. Processes that share it lose what another
// one saves at the same moment, never more.
func FileTokens(path string) TokenStore { return &fileTokens{path: path} }

type fileTokens struct {
	path string
	mu   sync.Mutex
}

func (f *fileTokens) read() (map[string][]byte, error) {
	all := make(map[string][]byte)
	text, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil && json.Unmarshal(text, &all) != nil {
		err = fmt.Errorf("mcp: %s is no file of tokens", f.path)
	}
	return all, err
}

func (f *fileTokens) Load(_ context.Context, key string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	return all[key], err
}

func (f *fileTokens) Save(_ context.Context, key string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.read()
	if err != nil {
		return err
	}
	if data == nil {
		delete(all, key)
	} else {
		all[key] = data
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(f.path), ".tokens-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	err = cmp.Or(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}

// A savedToken is a token as it is stored.
type savedToken struct {
	Issuer   string    `json:"issuer"`
	Resource string    `json:"resource"`
	Access   string    `json:"access"`
	Refresh  string    `json:"refresh,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Scopes   []string  `json:"scopes,omitempty"` // that were asked for
	Proof    bool      `json:"proof,omitempty"`  // of type DPoP
	ProofKey []byte    `json:"proofKey,omitempty"`
}

// A savedClient is a registration as it is stored.
type savedClient struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method,omitempty"` // token_endpoint_auth_method
	Redirect string `json:"redirect,omitempty"`
	Expires  int64  `json:"expires,omitempty"` // of the secret, in Unix seconds
}

// Bounds of a client that is asked for tokens.
const (
	maxAuthServers = 100              // MCP servers an OAuth knows at a time
	maxIssuers     = 3                // authorization servers of one that are tried
	maxLogins      = 3                // in loginPeriod, for one server
	loginPeriod    = time.Minute      // in which more is a loop
	renewEarly     = 30 * time.Second // before a token expires
	declineTime    = 3 * time.Second  // in which a user who did not agree is not asked again
	flightTime     = 2 * time.Minute  // for all that is done without a user
)

// An authState is what is known of one MCP server.
type authState struct {
	o      *OAuth
	server *url.URL

	mu      sync.Mutex
	loaded  bool
	token   savedToken
	key     crypto.Signer // proves possession of the token
	uses    int           // of the token
	nonce   string        // that the MCP server wants in proofs
	asNonce string        // and the authorization server
	logins  []time.Time
	refused string // the assertion that was refused last

	declined   error // why the user did not agree
	declinedAt time.Time
	flight     *authFlight
}

// An authFlight is work on a new token, which all who need one wait for.
type authFlight struct {
	done chan struct{}
	err  error
}

func (o *OAuth) state(u *url.URL) *authState {
	key := u.Scheme + "://" + u.Host + u.EscapedPath()
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.states[key]
	if s == nil {
		if len(o.states) >= maxAuthServers {
			o.states = nil
		}
		if o.states == nil {
			o.states = make(map[string]*authState)
		}
		server := *u
		server.RawQuery, server.Fragment, server.User = "", "", nil
		s = &authState{o: o, server: &server}
		o.states[key] = s
	}
	return s
}

func (o *OAuth) store() TokenStore {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Tokens != nil {
		return o.Tokens
	}
	if o.memory == nil {
		o.memory = NewMemoryTokens()
	}
	return o.memory
}

func (o *OAuth) log() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// Forget removes the token for an MCP server.
func (o *OAuth) Forget(ctx context.Context, server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("mcp: the server's URL is malformed")
	}
	s := o.state(u)
	s.mu.Lock()
	s.token, s.key, s.loaded = savedToken{}, nil, true
	s.mu.Unlock()
	return o.store().Save(ctx, s.tokenKey(), nil)
}

func (s *authState) tokenKey() string { return "token " + s.server.String() }

// Authorize adds the token to a request, if there is one. One that is about to
// expire is renewed first.
func (o *OAuth) Authorize(ctx context.Context, r *http.Request) error {
	s := o.state(r.URL)
	if err := s.load(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	expired := s.token.Access != "" && !s.token.Expires.IsZero() && time.Until(s.token.Expires) < renewEarly
	again := expired && (s.token.Refresh != "" || o.Grant != nil)
	s.mu.Unlock()
	if again {
		if err := s.join(ctx, func(ctx context.Context) error { return s.renew(ctx, &asked{expired: true}) }); err != nil {
			return err
		}
	}
	return s.authorize(r)
}

func (s *authState) authorize(r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Access == "" {
		return nil
	}
	s.uses++
	if !s.token.Proof {
		r.Header.Set("Authorization", "Bearer "+s.token.Access)
		return nil
	}
	proof, err := signProof(s.key, r.Method, r.URL, s.token.Access, s.nonce)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "DPoP "+s.token.Access)
	r.Header.Set("DPoP", proof)
	return nil
}

// load reads the token of an earlier process.
func (s *authState) load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return nil
	}
	data, err := s.o.store().Load(ctx, s.tokenKey())
	if err != nil {
		return fmt.Errorf("mcp: load the token: %w", err)
	}
	var t savedToken
	if data != nil && json.Unmarshal(data, &t) == nil {
		s.token, s.key = t, s.o.ProofKey
		if t.ProofKey != nil {
			if key, err := x509.ParsePKCS8PrivateKey(t.ProofKey); err == nil {
				s.key, _ = key.(crypto.Signer)
			}
		}
		if t.Proof && s.key == nil {
			s.token = savedToken{}
		}
	}
	s.loaded = true
	return nil
}

// asked is what a challenge asks for.
type asked struct {
	metadata string   // where the resource's metadata is
	scopes   []string // that the request needs
	more     bool     // and the token has not
	expired  bool     // nobody refused the token, it is just old
	proof    bool     // of possession
	version  string   // of the protocol, for what is fetched
}

// Challenge answers 401 with a new token, and 403 for want of scopes with a
// token that has more.
func (o *OAuth) Challenge(ctx context.Context, r *http.Response) (again bool, err error) {
	s := o.state(r.Request.URL)
	c, ok := findChallenge(parseChallenges(r.Header["Www-Authenticate"]), "bearer", "dpop")
	want := &asked{
		metadata: c.params["resource_metadata"], scopes: strings.Fields(c.params["scope"]), proof: c.scheme == "dpop",
		version: r.Request.Header.Get(headerVersion),
	}
	if r.StatusCode == http.StatusForbidden {
		if !ok || c.params["error"] != "insufficient_scope" {
			return false, nil
		}
		want.more = true
	}
	_, sent, _ := strings.Cut(r.Request.Header.Get("Authorization"), " ")
	s.mu.Lock()
	renewed := sent != s.token.Access && s.token.Access != ""
	nonce := r.Header.Get("DPoP-Nonce")
	needsNonce := nonce != "" && nonce != s.nonce && c.params["error"] == "use_dpop_nonce"
	if nonce != "" {
		s.nonce = nonce
	}
	s.mu.Unlock()
	if renewed || needsNonce {
		return true, nil
	}
	err = s.join(ctx, func(ctx context.Context) error { return s.renew(ctx, want) })
	if errors.Is(err, errNoAuthServer) {
		o.log().Info("mcp: the server wants credentials, and has nothing of OAuth", "server", s.server.Host)
		return false, nil // what the server said is the better error
	}
	return err == nil, err
}

// errNoAuthServer is why there is no token where OAuth is nowhere to be seen.
var errNoAuthServer = errors.New("there is no authorization server")

// join waits for the work that is under way, or starts it. The work goes on
// without who started it: others may wait for it, too.
func (s *authState) join(ctx context.Context, work func(context.Context) error) error {
	s.mu.Lock()
	f := s.flight
	if f == nil {
		f = &authFlight{done: make(chan struct{})}
		s.flight = f
		go func() {
			limit := flightTime
			if s.o.Grant == nil {
				limit += s.o.promptTime()
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			defer func() {
				if p := recover(); p != nil {
					f.err = errors.New("mcp: the authorization panicked")
					s.o.log().Error("mcp: panic in the authorization", "panic", p)
				}
				s.mu.Lock()
				s.flight = nil
				s.mu.Unlock()
				close(f.done)
			}()
			f.err = work(ctx)
		}()
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *OAuth) promptTime() time.Duration {
	if o.PromptTime > 0 {
		return o.PromptTime
	}
	return 5 * time.Minute
}

// renew gets another token. A token of ours that was never taken is not
// replaced again and again (2026-07-28 basic/authorization § Step-Up).
func (s *authState) renew(ctx context.Context, want *asked) error {
	s.mu.Lock()
	old := s.token
	unused := old.Access != "" && s.uses <= 1
	now := time.Now()
	s.logins = slices.DeleteFunc(s.logins, func(t time.Time) bool { return now.Sub(t) > loginPeriod })
	logins := len(s.logins)
	declined := s.declined
	if now.Sub(s.declinedAt) > declineTime {
		declined = nil
	}
	s.mu.Unlock()
	has := func(scope string) bool { return slices.Contains(old.Scopes, scope) }
	switch {
	case want.more && len(want.scopes) > 0 && !slices.ContainsFunc(want.scopes, func(scope string) bool { return !has(scope) }):
		return fmt.Errorf("mcp: the token does not suffice, though the scopes %q were asked for", printable(strings.Join(want.scopes, " "), 500))
	case !want.more && !want.expired && unused && logins > 0:
		return errors.New("mcp: the server refuses a token that was just issued for it")
	case declined != nil: // other calls were under way, too
		return declined
	case logins >= maxLogins:
		return fmt.Errorf("mcp: %d tokens within %v did not satisfy the server", logins, loginPeriod)
	}
	p, err := s.discover(ctx, want)
	if err != nil {
		return err
	}
	if old.Refresh != "" && !want.more && old.Issuer == p.as.Issuer {
		err := s.refresh(ctx, p, &old)
		var refused *oauthError
		if err == nil || !errors.As(err, &refused) || refused.status >= 500 {
			return err // what is transient costs no credentials
		}
		s.o.log().Info("mcp: the refresh token was refused", "error", refused.code)
	}
	s.mu.Lock()
	s.logins = append(s.logins, now)
	s.mu.Unlock()
	return s.login(ctx, p, &old, want)
}

// A party is who is asked for tokens, for what.
type party struct {
	resource string // for the parameter resource
	scopes   []string
	as       *AuthServerMetadata
	guessed  bool // there was no metadata
	proof    bool // tokens need proof of possession
}

// fetcher returns what fetches for the server: a public one cannot send the
// client to what is on its own machine.
func (s *authState) fetcher(version string) *fetcher {
	return &fetcher{client: s.o.Client, header: http.Header{headerVersion: {cmp.Or(version, LatestVersion)}}, local: loopbackHost(s.server.Host)}
}

// discover finds out who issues tokens for the server.
func (s *authState) discover(ctx context.Context, want *asked) (*party, error) {
	f := s.fetcher(want.version)
	prm, err := s.resourceMetadata(ctx, f, want.metadata)
	if err != nil {
		return nil, err
	}
	if prm == nil {
		return s.discoverOld(ctx, f, want)
	}
	issuers := prm.AuthorizationServers
	if s.o.Issuer != "" && s.o.ClientID != "" {
		if !slices.Contains(issuers, s.o.Issuer) {
			return nil, fmt.Errorf("mcp: the server wants tokens of %s, and the client is registered at another issuer", printable(issuers[0], 200))
		}
		issuers = []string{s.o.Issuer}
	}
	var as *AuthServerMetadata
	var failed []error
	for _, issuer := range issuers[:min(len(issuers), maxIssuers)] {
		if as, err = fetchServerMetadata(ctx, f, issuer); err == nil {
			break
		}
		failed = append(failed, err)
	}
	if as == nil {
		return nil, fmt.Errorf("mcp: %w", errors.Join(failed...))
	}
	p := &party{resource: prm.Resource, as: as, scopes: prm.ScopesSupported, proof: want.proof || prm.DPoPBoundAccessTokensRequired || s.o.ProofKey != nil}
	return p, nil
}

// resourceMetadata finds the server's metadata: where the challenge says, or at
// the well-known places. Whatever is wrong with one place, the next is tried;
// nil means that there is none (2026-07-28 basic/authorization § Protected
// Resource Metadata Discovery Requirements).
func (s *authState) resourceMetadata(ctx context.Context, f *fetcher, named string) (*ResourceMetadata, error) {
	root := *s.server
	root.Path, root.RawPath = "", ""
	places := []string{wellKnown(s.server, "oauth-protected-resource").String(), wellKnown(&root, "oauth-protected-resource").String()}
	if named != "" {
		places = append([]string{named}, places...)
	}
	var wrong error
	for _, place := range slices.Compact(places) {
		var m ResourceMetadata
		err := f.document(ctx, place, &m)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && (m.Resource == "" || len(m.AuthorizationServers) == 0):
			err = errors.New("it names no resource or no authorization server")
		case err == nil && !identifies(m.Resource, s.server):
			// Whoever follows it gets tokens for somebody else (RFC 9728 § 3.3).
			wrong = fmt.Errorf("mcp: the metadata at %s is of the resource %q", printable(place, 300), printable(m.Resource, 200))
			continue
		}
		if err == nil {
			return &m, nil
		}
		s.o.log().Debug("mcp: no metadata of the resource", "at", printable(place, 300), "error", err)
	}
	return nil, wrong
}

// identifies reports whether a resource is the server, or what it is a part of.
func identifies(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.User != nil || u.Fragment != "" || !strings.EqualFold(u.Scheme, server.Scheme) || !strings.EqualFold(u.Host, server.Host) {
		return false
	}
	whole, part := strings.TrimSuffix(u.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return part == whole || strings.HasPrefix(part, whole+"/")
}

// discoverOld is for servers of 2025-03-26, which are their own authorization
// servers (2025-03-26 basic/authorization § Authorization Base URL).
func (s *authState) discoverOld(ctx context.Context, f *fetcher, want *asked) (*party, error) {
	origin := s.server.Scheme + "://" + s.server.Host
	if s.o.Issuer != "" && s.o.ClientID != "" {
		origin = s.o.Issuer
	}
	p := &party{resource: s.server.String(), proof: want.proof || s.o.ProofKey != nil}
	as, err := fetchServerMetadata(ctx, f, origin)
	switch {
	case err == nil:
		p.as = as
	case ctx.Err() != nil || origin == s.o.Issuer:
		return nil, fmt.Errorf("mcp: %w", err)
	default:
		p.guessed = true
		p.as = &AuthServerMetadata{Issuer: origin, AuthorizationEndpoint: origin + "/authorize", TokenEndpoint: origin + "/token", RegistrationEndpoint: origin + "/register"}
	}
	return p, nil
}

// login gets a token by the grant.
func (s *authState) login(ctx context.Context, p *party, old *savedToken, want *asked) error {
	scopes := slices.Clone(want.scopes)
	if len(scopes) == 0 && !want.more {
		scopes = slices.Clone(p.scopes)
	}
	if old.Issuer == p.as.Issuer {
		scopes = append(scopes, old.Scopes...)
	}
	scopes = append(scopes, s.o.Scopes...)
	if s.o.Grant == nil && slices.Contains(p.as.ScopesSupported, "offline_access") {
		scopes = append(scopes, "offline_access")
	}
	p.scopes = unique(scopes)
	var key crypto.Signer
	if p.proof {
		if algs := p.as.DPoPSigningAlgValuesSupported; s.o.ProofKey == nil && algs != nil && !slices.Contains(algs, "ES256") {
			return errors.New("mcp: the server wants proofs of possession, and the authorization server takes none that is signed with ES256")
		}
		if key = s.o.ProofKey; key == nil {
			var err error
			if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
				return err
			}
		}
	}
	s.o.log().Info("mcp: a token is asked for", "issuer", p.as.Issuer, "scopes", p.scopes)
	var reply *tokenReply
	var err error
	if s.o.Grant != nil {
		reply, err = s.o.Grant.get(ctx, s, p, key)
	} else {
		reply, err = s.authorizationCode(ctx, p, key)
	}
	if err != nil {
		err = fmt.Errorf("mcp: no token of %s: %w", p.as.Issuer, err)
		var said *promptError
		if errors.As(err, &said) {
			s.mu.Lock()
			s.declined, s.declinedAt = err, time.Now()
			s.mu.Unlock()
		}
		return err
	}
	return s.keep(ctx, p, reply, key, nil)
}

// A promptError is why there is no code after a user was asked.
type promptError struct{ error }

func (e *promptError) Unwrap() error { return e.error }

// unique drops what is there twice.
func unique(list []string) []string {
	var out []string
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// keep takes a token into use and saves it.
func (s *authState) keep(ctx context.Context, p *party, reply *tokenReply, key crypto.Signer, old *savedToken) error {
	t := savedToken{Issuer: p.as.Issuer, Resource: p.resource, Access: reply.access, Refresh: reply.refresh, Scopes: p.scopes, Proof: reply.proof}
	if old != nil {
		t.Scopes = old.Scopes
		t.Refresh = cmp.Or(reply.refresh, old.Refresh) // RFC 6749 § 6: it may stay the same
	}
	if reply.lifetime > 0 {
		t.Expires = time.Now().Add(reply.lifetime)
	}
	if t.Proof && s.o.ProofKey == nil {
		t.ProofKey, _ = x509.MarshalPKCS8PrivateKey(key)
	}
	s.mu.Lock()
	s.token, s.key, s.uses, s.loaded = t, key, 0, true
	s.mu.Unlock()
	data, err := json.Marshal(&t)
	if err == nil {
		err = s.o.store().Save(ctx, s.tokenKey(), data)
	}
	if err != nil {
		return fmt.Errorf("mcp: the token could not be saved: %w", err)
	}
	return nil
}

// refresh trades the refresh token in.
func (s *authState) refresh(ctx context.Context, p *party, old *savedToken) error {
	c, err := s.knownClient(ctx, p)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}, "resource": {cmp.Or(old.Resource, p.resource)}}
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	if !old.Proof {
		key = nil
	}
	reply, err := s.tokenRequest(ctx, p.as, c, form, key)
	if err != nil {
		return err
	}
	return s.keep(ctx, p, reply, key, old)
}

// ---- Who the client is ----------------------------------------------------------

// preregistered returns the client that the fields name.
func (o *OAuth) preregistered(as *AuthServerMetadata) *savedClient {
	c := &savedClient{ID: o.ClientID, Secret: o.ClientSecret}
	methods := as.TokenEndpointAuthMethodsSupported
	switch {
	case o.ClientKey != nil:
		c.Method = "private_key_jwt"
	case o.ClientSecret == "":
		c.Method = "none"
	case o.AuthMethod != "":
		c.Method = o.AuthMethod
	case methods == nil || slices.Contains(methods, "client_secret_basic") || !slices.Contains(methods, "client_secret_post"):
		c.Method = "client_secret_basic"
	default:
		c.Method = "client_secret_post"
	}
	return c
}

func clientStoreKey(issuer string) string { return "client " + issuer }

// knownClient returns the client as the authorization server knows it already.
func (s *authState) knownClient(ctx context.Context, p *party) (*savedClient, error) {
	o := s.o
	switch {
	case o.ClientID != "":
		return o.preregistered(p.as), nil
	case o.ClientMetadataURL != "" && p.as.ClientIDMetadataDocumentSupported:
		u, err := url.Parse(o.ClientMetadataURL)
		if err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") == "" {
			return nil, errors.New("mcp: OAuth.ClientMetadataURL must be an https URL with a path")
		}
		c := &savedClient{ID: o.ClientMetadataURL, Method: "none"}
		if o.ClientKey != nil {
			c.Method = "private_key_jwt"
		}
		return c, nil
	}
	data, err := o.store().Load(ctx, clientStoreKey(p.as.Issuer))
	if err != nil {
		return nil, fmt.Errorf("mcp: load the registration: %w", err)
	}
	var c savedClient
	if data == nil || json.Unmarshal(data, &c) != nil || c.Expires != 0 && time.Now().Unix() > c.Expires {
		return nil, nil
	}
	return &c, nil
}

// register makes the client known (RFC 7591).
func (s *authState) register(ctx context.Context, p *party, redirect string) (*savedClient, error) {
	if p.as.RegistrationEndpoint == "" {
		return nil, errors.New("the authorization server registers no clients: set OAuth.ClientID, or ClientMetadataURL if it takes such")
	}
	methods := p.as.TokenEndpointAuthMethodsSupported
	method := "none"
	for _, m := range []string{"none", "client_secret_basic", "client_secret_post"} {
		if slices.Contains(methods, m) {
			method = m
			break
		}
	}
	kind := "web"
	if u, err := url.Parse(redirect); err == nil && (loopbackHost(u.Host) || u.Scheme != "https") {
		kind = "native"
	}
	body, err := json.Marshal(&ClientMetadata{
		ClientName: cmp.Or(s.o.ClientName, "MCP client"), RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: method, ApplicationType: kind, Scope: strings.Join(p.scopes, " "), DPoPBoundAccessTokens: p.proof,
	})
	if err != nil {
		return nil, err
	}
	status, _, answer, err := s.post(ctx, p.as.RegistrationEndpoint, "application/json", body, nil)
	if err != nil {
		return nil, err
	}
	if p.guessed && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		return nil, errNoAuthServer
	}
	if status < 200 || status > 299 {
		return nil, fmt.Errorf("the registration was refused: %w", refusedBy(status, answer))
	}
	var reply struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Method       string `json:"token_endpoint_auth_method"`
		Expires      int64  `json:"client_secret_expires_at"`
	}
	if err := decodeOAuth(answer, &reply); err != nil || reply.ClientID == "" {
		return nil, errors.New("the answer to the registration has no client_id")
	}
	c := &savedClient{ID: reply.ClientID, Secret: reply.ClientSecret, Method: cmp.Or(reply.Method, method), Redirect: redirect, Expires: reply.Expires}
	if c.Secret != "" && c.Method == "none" && !slices.Contains(methods, "none") && methods != nil {
		c.Method = "client_secret_basic"
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = s.o.store().Save(ctx, clientStoreKey(p.as.Issuer), data)
	}
	return c, err
}

// authenticate adds what shows who the client is (RFC 6749 § 2.3, RFC 7523).
func (o *OAuth) authenticate(form url.Values, header http.Header, as *AuthServerMetadata, c *savedClient) error {
	switch c.Method {
	case "client_secret_basic":
		text := url.QueryEscape(c.ID) + ":" + url.QueryEscape(c.Secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(text)))
		return nil
	case "client_secret_post":
		form.Set("client_secret", c.Secret)
	case "private_key_jwt":
		if o.ClientKey == nil {
			return errors.New("the client must authenticate with a key: set OAuth.ClientKey")
		}
		now := time.Now()
		assertion, err := signJWT(o.ClientKey, map[string]any{"typ": "JWT"}, &jwtClaims{
			Iss: c.ID, Sub: c.ID, Aud: stringOrSet{as.Issuer}, Jti: randomText(), Iat: numericDate(now.Unix()), Exp: numericDate(now.Add(time.Minute).Unix()),
		})
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	case "none", "":
	default:
		return fmt.Errorf("the authorization server wants the client to authenticate by %q, which is not known here", printable(c.Method, 50))
	}
	if c.ID != "" {
		form.Set("client_id", c.ID)
	}
	return nil
}

const (
	assertionType  = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantJWT       = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange  = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeIDJAG      = "urn:ietf:params:oauth:token-type:id-jag"
	typeIDToken    = "urn:ietf:params:oauth:token-type:id_token"
	typeJAGInToken = "oauth-id-jag+jwt"
)

// ---- The token endpoint -------------------------------------------------------------

// A tokenReply is what the token endpoint gave.
type tokenReply struct {
	access, refresh string
	issued          string // issued_token_type
	proof           bool   // of type DPoP
	lifetime        time.Duration
}

// tokenRequest asks the token endpoint, with a proof if there is a key, and
// once more if the proof needs a nonce.
func (s *authState) tokenRequest(ctx context.Context, as *AuthServerMetadata, c *savedClient, form url.Values, key crypto.Signer) (*tokenReply, error) {
	endpoint, err := checkURL(as.TokenEndpoint)
	if err != nil {
		return nil, fmt.Errorf("the token endpoint: %w", err)
	}
	for again := false; ; again = true {
		header := make(http.Header)
		if err := s.o.authenticate(form, header, as, c); err != nil {
			return nil, err
		}
		s.mu.Lock()
		nonce := s.asNonce
		s.mu.Unlock()
		if key != nil {
			proof, err := signProof(key, http.MethodPost, endpoint, "", nonce)
			if err != nil {
				return nil, err
			}
			header.Set("DPoP", proof)
		}
		status, replied, body, err := s.post(ctx, as.TokenEndpoint, formType, []byte(form.Encode()), header)
		if err != nil {
			return nil, err
		}
		if n := replied.Get("DPoP-Nonce"); n != "" {
			s.mu.Lock()
			s.asNonce = n
			s.mu.Unlock()
		}
		reply, err := readTokenReply(status, replied, body)
		var refused *oauthError
		if !again && key != nil && errors.As(err, &refused) && refused.code == "use_dpop_nonce" {
			continue
		}
		return reply, err
	}
}

// post sends something to an endpoint of the authorization server. Redirects
// are not followed: they would carry secrets away.
func (s *authState) post(ctx context.Context, to, contentType string, body []byte, header http.Header) (status int, replied http.Header, answer []byte, err error) {
	f := s.fetcher("")
	u, err := f.check(to)
	if err != nil {
		return 0, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	client := f.clientFor(u)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, failedRequest("POST", u, err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxOAuthReply))
	return response.StatusCode, response.Header, answer, err
}

// refusedBy is the error in an endpoint's answer.
func refusedBy(status int, body []byte) *oauthError {
	e := &oauthError{status: status, code: "status " + strconv.Itoa(status)}
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if decodeOAuth(body, &said) == nil && said.Error != "" {
		e.code, e.description = printable(said.Error, 100), printable(said.Description, 300)
	}
	return e
}

// readTokenReply reads the answer of a token endpoint: JSON, or the form that
// some write; any 2xx; with an error in it that wins (RFC 6749 § 5).
func readTokenReply(status int, header http.Header, body []byte) (*tokenReply, error) {
	var said struct {
		Access      string          `json:"access_token"`
		Type        string          `json:"token_type"`
		Issued      string          `json:"issued_token_type"`
		Refresh     string          `json:"refresh_token"`
		Expires     json.RawMessage `json:"expires_in"`
		Error       string          `json:"error"`
		Description string          `json:"error_description"`
	}
	if strings.HasPrefix(header.Get("Content-Type"), formType) {
		form, _ := url.ParseQuery(string(body))
		said.Access, said.Type, said.Refresh = form.Get("access_token"), form.Get("token_type"), form.Get("refresh_token")
		said.Error, said.Description, said.Expires = form.Get("error"), form.Get("error_description"), json.RawMessage(form.Get("expires_in"))
	} else if err := decodeOAuth(body, &said); err != nil && status >= 200 && status <= 299 {
		return nil, errors.New("the answer of the token endpoint is malformed")
	}
	switch {
	case said.Error != "":
		return nil, &oauthError{status, printable(said.Error, 100), printable(said.Description, 300)}
	case status < 200 || status > 299:
		return nil, refusedBy(status, body)
	case said.Access == "" || len(said.Access) > maxTokenLength || strings.ContainsFunc(said.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the answer of the token endpoint has no usable access_token")
	}
	reply := &tokenReply{access: said.Access, refresh: said.Refresh, issued: said.Issued}
	switch strings.ToLower(said.Type) {
	case "dpop":
		reply.proof = true
	case "bearer", "", "n_a":
	default:
		return nil, fmt.Errorf("the token is of the type %q, which is not known here", printable(said.Type, 50))
	}
	if seconds, err := strconv.ParseFloat(strings.Trim(string(said.Expires), `"`), 64); err == nil && seconds > 0 && seconds < 1<<31 {
		reply.lifetime = time.Duration(seconds * float64(time.Second))
	}
	return reply, nil
}

// ---- The authorization code ------------------------------------------------------

// authorizationCode sends the user to the authorization server and trades the
// code that comes back in (2026-07-28 basic/authorization § Authorization Flow
// Steps).
func (s *authState) authorizationCode(ctx context.Context, p *party, key crypto.Signer) (*tokenReply, error) {
	switch {
	case s.o.Prompt == nil && s.o.Open == nil:
		return nil, errors.New("a user must agree: set OAuth.Open")
	case s.o.Prompt != nil && s.o.RedirectURL == "":
		return nil, errors.New("OAuth.Prompt needs RedirectURL")
	case !p.guessed && !slices.Contains(p.as.CodeChallengeMethodsSupported, "S256"):
		return nil, errors.New("the authorization server does not say that it supports PKCE with S256")
	}
	endpoint, err := checkURL(p.as.AuthorizationEndpoint)
	if err != nil {
		return nil, fmt.Errorf("the authorization endpoint: %w", err)
	}
	c, err := s.knownClient(ctx, p)
	if err != nil {
		return nil, err
	}
	redirect := s.o.RedirectURL
	var l *codeListener
	if s.o.Prompt == nil {
		if l, err = listenForCode(c); err != nil {
			return nil, err
		}
		defer l.close()
		redirect = l.url
	}
	if c == nil || c.Redirect != "" && c.Redirect != redirect {
		if c, err = s.register(ctx, p, redirect); err != nil {
			return nil, err
		}
	}
	verifier, state := randomText()+randomText(), randomText()
	challenge := sha256.Sum256([]byte(verifier))
	q := endpoint.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": c.ID, "redirect_uri": redirect, "state": state, "resource": p.resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256", "scope": strings.Join(p.scopes, " "),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	endpoint.RawQuery = q.Encode()
	ctx, cancel := context.WithTimeout(ctx, s.o.promptTime())
	defer cancel()
	var answer url.Values
	if l != nil {
		answer, err = l.ask(ctx, s.o.Open, endpoint.String(), state)
	} else if answer, err = s.o.Prompt(ctx, endpoint.String()); err == nil && !sameSecret(answer.Get("state"), state) {
		err = errors.New("the answer is to another request: its state is wrong")
	}
	if err != nil {
		return nil, &promptError{err}
	}
	code, err := codeIn(answer, p.as)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}, "resource": {p.resource}}
	return s.tokenRequest(ctx, p.as, c, form, key)
}

// codeIn returns the code of an answer, if the answer is the issuer's: compared
// byte by byte, and before anything in it counts (RFC 9207 § 2.4).
func codeIn(answer url.Values, as *AuthServerMetadata) (string, error) {
	iss, has := answer["iss"]
	switch {
	case has && (len(iss) != 1 || iss[0] != as.Issuer):
		return "", errors.New("the answer is of another issuer")
	case !has && as.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer does not say whose it is, though the authorization server promises that")
	case answer.Get("error") != "":
		return "", &oauthError{http.StatusBadRequest, printable(answer.Get("error"), 100), printable(answer.Get("error_description"), 300)}
	case len(answer["code"]) != 1 || answer.Get("code") == "":
		return "", errors.New("the answer has no code")
	}
	return answer.Get("code"), nil
}

// A codeListener hears of the answer on a loopback address (RFC 8252 § 7.3).
type codeListener struct {
	url    string
	l      net.Listener
	server *http.Server
	answer chan url.Values
}

const callbackPath = "/callback"

// listenForCode listens where a registered client said that it would, if it
// can, or else anywhere.
func listenForCode(c *savedClient) (*codeListener, error) {
	address := "127.0.0.1:0"
	if c != nil && c.Redirect != "" {
		if u, err := url.Parse(c.Redirect); err == nil && loopbackHost(u.Host) {
			address = u.Host
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("nothing can listen for the answer: %w", err)
	}
	return &codeListener{url: "http://" + l.Addr().String() + callbackPath, l: l, answer: make(chan url.Values, 1)}, nil
}

func (l *codeListener) close() {
	if l.server != nil {
		l.server.Close()
	}
	l.l.Close()
}

// ask opens the page and waits for the answer with the right state; others are
// told so and do not count.
func (l *codeListener) ask(ctx context.Context, open func(context.Context, string) error, page, state string) (url.Values, error) {
	l.server = &http.Server{
		ReadHeaderTimeout: fetchTime, WriteTimeout: fetchTime, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			switch q := r.URL.Query(); {
			case r.URL.Path != callbackPath || r.Method != http.MethodGet:
				http.NotFound(w, r)
			case len(q["state"]) != 1 || !sameSecret(q.Get("state"), state):
				http.Error(w, "This is the answer to another question.", http.StatusBadRequest)
			default:
				select {
				case l.answer <- q:
				default: // there was one already
				}
				io.WriteString(w, "Done. You can close this window.")
			}
		}),
	}
	go l.server.Serve(l.l)
	opened := make(chan error, 1)
	go func() { opened <- open(ctx, page) }()
	for {
		select {
		case answer := <-l.answer:
			stop, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			l.server.Shutdown(stop) // the page is still being written
			return answer, nil
		case err := <-opened:
			if err != nil {
				return nil, fmt.Errorf("the page could not be opened: %w", err)
			}
			opened = nil
		case <-ctx.Done():
			return nil, fmt.Errorf("the user did not answer: %w", ctx.Err())
		}
	}
}

// ---- Grants without a user -----------------------------------------------------------

// A Grant gets tokens without a user.
type Grant struct {
	get func(ctx context.Context, s *authState, p *party, key crypto.Signer) (*tokenReply, error)
}

// machine returns the client of a grant without a user, which never registers.
func (s *authState) machine(p *party) *savedClient { return s.o.preregistered(p.as) }

// ClientCredentials is the grant of a client that acts for itself: OAuth.ClientID
// with its key (preferred) or secret.
func ClientCredentials() *Grant {
	return &Grant{func(ctx context.Context, s *authState, p *party, key crypto.Signer) (*tokenReply, error) {
		if s.o.ClientID == "" {
			return nil, errors.New("client credentials need OAuth.ClientID")
		}
		form := url.Values{"grant_type": {"client_credentials"}, "resource": {p.resource}}
		setScopes(form, p.scopes)
		return s.tokenRequest(ctx, p.as, s.machine(p), form, key)
	}}
}

func setScopes(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
}

// WorkloadIdentity is the grant of a program that its platform vouches for:
// assertion returns a fresh JWT of the platform for an audience, the token
// endpoint. One that was refused is not sent again.
func WorkloadIdentity(assertion func(ctx context.Context, audience string) (string, error)) *Grant {
	return &Grant{func(ctx context.Context, s *authState, p *party, key crypto.Signer) (*tokenReply, error) {
		token, err := assertion(ctx, p.as.TokenEndpoint)
		if err != nil {
			return nil, err
		}
		return s.assert(ctx, p, token, key)
	}}
}

// assert trades an assertion in (RFC 7523 § 2.1).
func (s *authState) assert(ctx context.Context, p *party, assertion string, key crypto.Signer) (*tokenReply, error) {
	s.mu.Lock()
	refused := s.refused == assertion
	s.mu.Unlock()
	if refused {
		return nil, errors.New("the assertion was refused before")
	}
	form := url.Values{"grant_type": {grantJWT}, "assertion": {assertion}, "resource": {p.resource}}
	setScopes(form, p.scopes)
	reply, err := s.tokenRequest(ctx, p.as, s.machine(p), form, key)
	var e *oauthError
	if errors.As(err, &e) && e.status < 500 {
		s.mu.Lock()
		s.refused = assertion
		s.mu.Unlock()
	}
	return reply, err
}

// EnterpriseOptions say how an enterprise's identity provider vouches for its
// users.
type EnterpriseOptions struct {
	// TokenEndpoint is that of the identity provider; ClientID and ClientSecret
	// are the client's there.
	TokenEndpoint, ClientID, ClientSecret string
	// IDToken returns the user's ID token from the sign-on, addressed to ClientID.
	IDToken func(ctx context.Context) (string, error)
}

// EnterpriseManaged is the grant where an enterprise decides: the identity
// provider turns the user's ID token into an assertion for the MCP server's
// authorization server (an ID-JAG), which turns that into a token. OAuth.ClientID
// and ClientSecret are the client's at the latter.
func EnterpriseManaged(opts EnterpriseOptions) *Grant {
	return &Grant{func(ctx context.Context, s *authState, p *party, key crypto.Signer) (*tokenReply, error) {
		token, err := opts.IDToken(ctx)
		if err != nil {
			return nil, err
		}
		form := url.Values{
			"grant_type": {grantExchange}, "requested_token_type": {typeIDJAG}, "audience": {p.as.Issuer}, "resource": {p.resource},
			"subject_token": {token}, "subject_token_type": {typeIDToken},
		}
		setScopes(form, p.scopes)
		idp := &AuthServerMetadata{TokenEndpoint: opts.TokenEndpoint}
		client := &savedClient{ID: opts.ClientID, Secret: opts.ClientSecret, Method: "none"}
		if opts.ClientSecret != "" {
			client.Method = "client_secret_basic"
		}
		jag, err := s.tokenRequest(ctx, idp, client, form, nil)
		if err == nil && jag.issued != typeIDJAG {
			err = errors.New("it issued something else")
		}
		if err != nil {
			return nil, fmt.Errorf("the identity provider gave no assertion: %w", err)
		}
		return s.assert(ctx, p, jag.access, key)
	}}
}
