package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func mustTemplate(t testing.TB, s string) *uriTemplate {
	t.Helper()
	tmpl, err := parseTemplate(s)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// templateValue turns a value of the published vectors into one expandWith takes.
func templateValue(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			list[i] = fmt.Sprint(item)
		}
		return list
	case map[string]any:
		m := make(map[string]string, len(v))
		for k, item := range v {
			m[k] = fmt.Sprint(item)
		}
		return m
	case float64, bool:
		return fmt.Sprint(v)
	}
	return v
}

// templateFlat is what match makes of a string or a list; a map has no such form.
func templateFlat(v any, sep string) string {
	if list, ok := v.([]string); ok {
		return strings.Join(list, sep)
	}
	s, _ := v.(string)
	return s
}

// templateGroup is a group of published cases: a template, and what it expands
// to (a string, or several of which one is right) or false.
type templateGroup struct {
	Variables map[string]any
	Testcases [][2]any
}

func (g *templateGroup) get(name string) any { return templateValue(g.Variables[name]) }

// want returns the right expansions, none when the template is to be refused.
func (g *templateGroup) want(expect any) []string {
	switch expect := expect.(type) {
	case string:
		return []string{expect}
	case []any:
		return templateValue(expect).([]string)
	}
	return nil
}

// TestTemplateVectors runs the published test suite of RFC 6570: every case
// expands to what is expected, or is refused, and what is expected matches the
// template and gives its strings and lists back.
func TestTemplateVectors(t *testing.T) {
	var cases, refused, matched int
	for _, file := range []string{"spec-examples", "spec-examples-by-section", "extended-tests", "negative-tests"} {
		data, err := os.ReadFile("../shared/suites/uritemplate/" + file + ".json")
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("the published vectors are not here; TestTemplateExpand has ours")
		}
		var groups map[string]*templateGroup
		if err := errors.Join(err, json.Unmarshal(data, &groups)); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for _, c := range g.Testcases {
				cases++
				text, want, got := c[0].(string), g.want(c[1]), ""
				tmpl, err := parseTemplate(text)
				if err == nil {
					got, err = tmpl.expandWith(g.get)
				}
				switch {
				case want == nil && err == nil:
					t.Errorf("%s: expanded to %s, should be refused", text, got)
				case want == nil:
					refused++
				case err != nil || !slices.Contains(want, got):
					t.Errorf("%s: expanded to %q, %v; want one of %q", text, got, err, want)
				default:
					matched += len(want)
					for _, uri := range want {
						testTemplateBack(t, g, tmpl, text, uri)
					}
				}
			}
		}
	}
	t.Logf("%d cases: %d refused, %d expanded; %d URIs matched", cases, refused, cases-refused, matched)
	if cases < 250 {
		t.Errorf("only %d cases read", cases)
	}
}

func testTemplateBack(t *testing.T, g *templateGroup, tmpl *uriTemplate, text, uri string) {
	vars, ok := tmpl.match(uri)
	if !ok {
		t.Errorf("%s does not match %s", text, uri)
	}
	lossy := strings.Contains(text, ":") || strings.ContainsAny(text, "+#") && strings.Contains(uri, "%")
	if lossy || tmpl.expand(vars) == uri { // {+a}{b} can be read in more than one way
		return
	}
	for name, value := range vars {
		v := g.get(name)
		if _, isMap := v.(map[string]string); v == nil || isMap {
			continue
		}
		if value != templateFlat(v, ",") && value != templateFlat(v, "/") && value != templateFlat(v, ".") {
			t.Errorf("%s of %s: %s is %q, want %q", text, uri, name, value, v)
		}
	}
}

func TestTemplateExpand(t *testing.T) {
	vars := map[string]any{
		"s": "a b/ü", "e": "", "list": []string{"x", "y/z"}, "none": []string{},
		"m": map[string]string{"k": "v,w", "a": ""}, "esc": "50%25%", "path": "/dir/a.txt",
	}
	for text, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		"é/{s}":                 "%C3%A9/a%20b%2F%C3%BC",
		"{+s}":                  "a%20b/%C3%BC",
		"{esc}-{+esc}":          "50%2525%25-50%25%25",
		"{undef}":               "",
		"x{?undef,none}":        "x",
		"x{?e,s}":               "x?e=&s=a%20b%2F%C3%BC",
		"x{;e,list*}":           "x;e;list=x;list=y%2Fz",
		"x{?list}{&m*}":         "x?list=x,y%2Fz&a=&k=v%2Cw",
		"x{;m*}":                "x;a;k=v%2Cw",
		"{m}":                   "a,,k,v%2Cw",
		"{m*}":                  "a=,k=v%2Cw",
		"{/list*}{.s:1}{#path}": "/x/y%2Fz.a#/dir/a.txt",
		"{s:5}":                 "a%20b%2F%C3%BC",
		"{s:4}":                 "a%20b%2F",
		"{+esc:3}":              "50%25",
	} {
		got, err := mustTemplate(t, text).expandWith(func(name string) any { return vars[name] })
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	if got := mustTemplate(t, "x{/a,b}").expand(map[string]string{"b": "1"}); got != "x/1" {
		t.Errorf("an absent variable: %s", got)
	}
	if got, err := mustTemplate(t, "{list:1}").expandWith(func(name string) any { return vars[name] }); err == nil {
		t.Errorf("the prefix of a list: %s", got)
	}
	if got, err := mustTemplate(t, "{n}").expandWith(func(string) any { return 1 }); err == nil {
		t.Errorf("a number: %s", got)
	}
}

func TestTemplateErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x://{}":            "byte 5: the expression is empty",
		"x://{a":            "byte 4: the brace is not closed",
		"x://{a{b}}":        "byte 6: neither",
		"x://a}":            "byte 5: this character",
		"x://a b":           "byte 5: this character",
		"x://a\n":           "byte 5: this character",
		"x://%2":            "byte 4: this character",
		"x://{=a}":          "byte 5: this operator",
		"x://{,a}":          "byte 5: this operator",
		"x://{!a}":          "byte 5: this operator",
		"x://{@a}":          "byte 5: this operator",
		"x://{|a}":          "byte 5: this operator",
		"{+}":               "byte 2: a variable name",
		"{a,}":              "byte 3: a variable name",
		"{a,,b}":            "byte 3: a variable name",
		"{a, b}":            "byte 3: a variable name",
		"{\x00a}":           "byte 1: a variable name",
		"{a..b}":            "byte 3: a variable name",
		"{.}":               "byte 2: a variable name",
		"{..a}":             "byte 2: a variable name",
		"{a.}":              "byte 2: a variable name",
		"{a-b}":             "byte 2: neither",
		"x\xf9{a}":          "byte 1: this is not UTF-8",
		"{ü}":               "byte 1: a variable name",
		"{a%2}":             "byte 2: neither",
		"{a*b}":             "byte 2: neither",
		"{a:}":              "byte 3: a prefix length",
		"{a:0}":             "byte 3: a prefix length",
		"{a:01}":            "byte 3: a prefix length",
		"{a:+1}":            "byte 3: a prefix length",
		"{a:10000}":         "byte 3: a prefix length",
		"{a:70000}":         "byte 3: a prefix length",
		"{a:1*}":            "byte 3: a prefix length",
		"{ok}{?ok,b-d}tail": "byte 10: neither",

		"x{/" + strings.Repeat("a,", 63) + "b}{b}": "byte 131: these are too many",
	} {
		_, err := parseTemplate(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestTemplateMatch(t *testing.T) {
	type vars = map[string]string
	for _, c := range []struct {
		text, uri string
		want      vars // nil: no match
	}{
		{"repo://{owner}/{repo}/c{/path*}", "repo://o/r/c/a/b%20c", vars{"owner": "o", "repo": "r", "path": "a/b c"}},
		{"repo://{owner}/{repo}/c{/path*}", "repo://o/r/c", vars{"owner": "o", "repo": "r"}},
		{"repo://{owner}/{repo}/c{/path*}", "repo://o/r/x/c/a", nil},
		{"/search/{q}", "/search/go", vars{"q": "go"}},
		{"/search/{q}", "/search/go/", nil},
		{"/search/{q}", "/search/go\n", nil},
		{"/search/{q}", "/search/go?x", nil},
		{"/search/{q}", "/search/Hello%20W(o)rld!", vars{"q": "Hello W(o)rld!"}},
		{"/search/{q}", "/search/a%2520b", vars{"q": "a%20b"}},
		{"/search/{q}", "/search/é", vars{"q": "é"}},
		{"/search/{q}", "/search/a b", nil},
		{"/search/{q}", "/search/%zz", nil},
		{"/search/{q}", "/search/%2", nil},
		{"/search/{q}", "/search/%", nil},
		{"/search/{q}", "/search/%FF", nil},
		{"/search/{q}", "/search/\xff", nil},
		{"/search/{q}", "/search/%C0%AE", nil},
		{"/search/{q}", "/Search/x", nil},
		{"/search/{q}", "", nil},
		{"", "", vars{}},
		{"x://{a}", "x://%C2%A7%20a%2Fb", vars{"a": "§ a/b"}},
		{"x://{a}", "x://a/../b", nil},
		{"x://{a}/../b", "x://a/../b", vars{"a": "a"}},
		{"x://{+a}", "x://a/../b", vars{"a": "a/../b"}},
		{"x://{a}/b", "x://a/%2e%2e/b", nil},
		{"x://{a}", "X://a", nil},
		{"x://{a}", "x://", vars{"a": ""}},
		{"x://{a}", "x://a,b", vars{"a": "a,b"}},
		{"x://%FF/{a}", "x://%FF/1", vars{"a": "1"}},
		{"x://a{?m*}", "x://a?%FF=1", nil},
		{"x://a{?m*}", "x://a?%zz=1", nil},
		{"x://a{?m*}", "x://a?=1", nil},
		{"x://{a}F{b}", "x://aF%2F", vars{"a": "a", "b": "/"}},
		{"x://{a}{b}", "x://ab", vars{"a": "ab", "b": ""}},
		{"café/{a}", "café/1", vars{"a": "1"}},
		{"café/{a}", "caf%C3%A9/1", vars{"a": "1"}},
		{"x://{a}.{b}", "x://a.b.c", vars{"a": "a.b", "b": "c"}},

		{"file:///{+path}", "file:///a/b%20c.txt", vars{"path": "a/b c.txt"}},
		{"file:///{+path}", "file:///a/..b/c..", vars{"path": "a/..b/c.."}},
		{"file:///{+path}", "file:///a/../etc/passwd", nil},
		{"file:///{+path}", "file:///a/%2e%2E/etc", nil},
		{"file:///{+path}", "file:///a%2F..%2Fetc", nil},
		{"file:///{+path}", "file:///..%5Cetc", nil},
		{"file:///{+path}", "FILE:///../etc", nil},
		{"{+uri}", "FILE:///../etc", nil},
		{"file:///{+path}", "file:///a/./b", nil},
		{"file:///{+path}", "file:///a/..%20/b", nil},
		{"file:///{+path}", "file:///a%00.txt", nil},
		{"file:///{a}{b}/c", "file:///../c", nil},
		{"file:///{name}", "file:///a%2Fb", vars{"name": "a/b"}},
		{"file:///{name}", "file:///%252e%252e", vars{"name": "%2e%2e"}},

		{"x://{a}{?b,c}", "x://1", vars{"a": "1"}},
		{"x://{a}{?b,c}", "x://1?c=3&b=2", vars{"a": "1", "b": "2", "c": "3"}},
		{"x://{a}{?b,c}", "x://1?c=%26", vars{"a": "1", "c": "&"}},
		{"x://{a}{?b,c}", "x://1?b=", vars{"a": "1", "b": ""}},
		{"x://{a}{?b,c}", "x://1?b", vars{"a": "1", "b": ""}},
		{"x://{a}{?b,c}", "x://1?b=1&b=2", nil},
		{"x://{a}{?b,c}", "x://1?b=1&d=2", nil},
		{"x://{a}{?b,c}", "x://1?B=1", nil},
		{"x://{a}{?b,c}", "x://1?b=1&", nil},
		{"x://{a}{?b,c}", "x://1?", nil},
		{"x://{a}{?b,c}", "x://1?&b=1", nil},
		{"x://{a}{?b,c}", "x://1?b=a=b", nil},
		{"x://{a}{?b}{&c}", "x://1?c=3&b=2", vars{"a": "1", "b": "2", "c": "3"}},
		{"x://a?k=1{&b,c}", "x://a?k=1&c=3", vars{"c": "3"}},
		{"x://a{?b,m*}", "x://a?k=v%2C&b=1&z=2", vars{"b": "1", "m": "k=v,,z=2"}},
		{"x://a{?l*}", "x://a?l=1&l=2", vars{"l": "1,2"}},
		{"x://{+p}{?q}", "x://a/b?q=1", vars{"p": "a/b", "q": "1"}},
		{"x://{+p}{#f}", "x://a/b#c/d", vars{"p": "a/b", "f": "c/d"}},
		{"x://{+p}{;v}", "x://a/b;v=1", vars{"p": "a/b", "v": "1"}},
		{"x://{+p}{?q}", "x://a/b?z=1", nil},
		{"x://{+p}", "x://a/b?z=1#f", vars{"p": "a/b?z=1#f"}},
		{"x://{n}{.ext}", "x://a.txt", vars{"n": "a", "ext": "txt"}},
		{"x://{n}{.ext}", "x://a", vars{"n": "a"}},
		{"x://a{.x,y}", "x://a.b.c.d", vars{"x": "b", "y": "c.d"}},
		{"x://a{;p,q}", "x://a;q;p=1", vars{"p": "1", "q": ""}},
		{"x://a{/b,c}", "x://a/1", vars{"b": "1"}},
		{"x://a{/b,c}", "x://a/1/2/3", nil},
		{"x://{a,b}", "x://1,2,3", vars{"a": "1", "b": "2,3"}},
		{"x://{a,b}", "x://1", vars{"a": "1"}},
		{"x://{a:3}", "x://abc", vars{"a": "abc"}},
		{"x://{a:3}", "x://%C3%A9%C3%A9%C3%A9", vars{"a": "ééé"}},
		{"x://{a:3}", "x://abcd", nil},
		{"x://{a:1}/{a}", "x://f/foo", vars{"a": "foo"}},
		{"x://{a:1}/{a:2}", "x://f/fo", vars{"a": "fo"}},
		{"x://{a:1}/{a}", "x://g/foo", nil},
		{"x://{a}/{a}", "x://f/f", vars{"a": "f"}},
		{"x://{a}/{a}", "x://f/g", nil},
	} {
		got, ok := mustTemplate(t, c.text).match(c.uri)
		if ok != (c.want != nil) || !maps.Equal(got, c.want) {
			t.Errorf("%s of %s: %q, %v; want %q", c.text, c.uri, got, ok, c.want)
		}
	}
}

func TestUnsafePath(t *testing.T) {
	for _, v := range []string{"..", ".", "/..", "a/../b", "a/..", `a\..\b`, `..\`, "a/.", "../", "\x00", "a\x00b", ".. /x", ". ."} {
		if !unsafePath(v) {
			t.Errorf("%q is taken for safe", v)
		}
	}
	for _, v := range []string{"", "/", "a", "a..b", "..a", "a..", ".git/config", "a/b.c", "C:/x", " ", "%2e%2e"} {
		if unsafePath(v) {
			t.Errorf("%q is taken for unsafe", v)
		}
	}
}

// TestTemplateHostile: no URI takes much time, match or no match. A search
// among combinations would not end.
func TestTemplateHostile(t *testing.T) {
	const size = 100 << 10
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, text := range []string{
		"x://{a}", "x://{a*}", "x://{+a,b}", "x://{/a*}{/b*}{/c*}end", "x://{?a*}", "x://{?a,b*}{&c}",
		"x://{+a}{+b}{+c}end", "x://{+a}{;b}{&c*}{&d*}/", "x://{a}{b}{c}", "x://{+a}/{b}/{+c}/{d}", "x://{a:9999}{a}",
	} {
		tmpl := mustTemplate(t, text)
		for _, body := range []string{",a", "/a", "&a=1", "%2F"} {
			for _, uri := range []string{"x://" + fill(body), "x://?a=1" + fill(body)} {
				start := time.Now()
				tmpl.match(uri)
				if d := time.Since(start); d > 2*time.Second {
					t.Errorf("%s of %d KiB of %q took %v", text, size>>10, body, d)
				}
			}
		}
	}
}

// FuzzTemplate: no template and no URI breaks anything, and what simple
// templates expand to gives the values back.
func FuzzTemplate(f *testing.F) {
	f.Add("x://{a}{?b,c*}", "x://1?b=2&c=3", "v", "w")
	f.Add("{+a:3}{/b*}{;c}{#d}", "%2F/a/b;c#d", "a/b", "é%")
	f.Add("{}", "%", "..", "")
	f.Add("\xf9", "\xff", "\xff", "%FF")
	f.Add("{a,b}{.c}{&d*}", "1,2.3&d=4&e=5", ",.", "\x00")
	simple := []string{"x://{a}/{b}", "x://h{/a,b}", "x://h{?a,b}", "x://h{?b}{&a}", "x://h?k=1{&a,b}", "x://h{;b,a}", "x://{a}{?b}", "x://{a,b}", "{a}{#b}", "{/a}{?b}"}
	f.Fuzz(func(t *testing.T, text, uri, a, b string) {
		vars := map[string]string{"a": a, "b": b}
		if tmpl, err := parseTemplate(text); err == nil {
			tmpl.match(uri)
			tmpl.match(tmpl.expand(vars))
		} else if !strings.Contains(err.Error(), "byte ") && len(text) < 1000 {
			t.Errorf("%q: no position: %v", text, err)
		}
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		for _, text := range simple {
			if strings.Contains(text, "#") && strings.Contains(b, "%") {
				continue // there an escape in the value stays one
			}
			tmpl := mustTemplate(t, text)
			uri := tmpl.expand(vars)
			got, ok := tmpl.match(uri)
			if !ok || !maps.Equal(got, vars) {
				t.Errorf("%s of %s: %q, %v; want %q", text, uri, got, ok, vars)
			}
		}
	})
}

func BenchmarkTemplateMatch(b *testing.B) {
	short := mustTemplate(b, "repo://{owner}/{repo}/c{/path*}{?ref}")
	for name, uri := range map[string]string{"short": "repo://octo/kit/c/src/a.go?ref=main", "other": "file:///src/a.go", "100KiB": "repo://o/r/c/" + strings.Repeat(",a", 50<<10)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				short.match(uri)
			}
		})
	}
}
