package mcp

import (
	"context"
	"errors"
	"testing"
)

func TestListenIsTheSameAtEveryRevision(t *testing.T) {
	shows(t, "subs.ack.client-check", "subs.stdio.correlate", "subs.close.abrupt")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		ctx := context.Background()
		s := testServer(nil)
		ct, st := InMemory()
		ss, err := s.Connect(ctx, st)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{version}}).Connect(ctx, ct)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		tools, err := cs.Listen(ctx, SubscriptionFilter{ToolsListChanged: true})
		if err != nil || !tools.Honored.ToolsListChanged {
			t.Fatal(err, tools)
		}
		one, err := cs.Listen(ctx, SubscriptionFilter{ResourceSubscriptions: []string{"test://a"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := cs.Ping(ctx); err != nil { // the legacy server has seen "initialized"
			t.Fatal(err)
		}
		s.RemoveTools("fail")
		s.ResourceUpdated("test://users/1")
		s.ResourceUpdated("test://a")
		first := func(sub *Subscription) (c Change, err error) {
			for c, err := range sub.Events(ctx) {
				return c, err
			}
			return c, nil
		}
		if c, err := first(tools); err != nil || c != (Change{Method: "notifications/tools/list_changed"}) {
			t.Errorf("tools: %v, %v", c, err)
		}
		if c, err := first(one); err != nil || c != (Change{"notifications/resources/updated", "test://a"}) {
			t.Errorf("resource: %v, %v", c, err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if c, err := first(one); err != nil || c != (Change{}) {
			t.Errorf("after Close: %v, %v", c, err)
		}
		ss.Close()
		switch c, err := first(tools); {
		case revisionOf(version).modern && (err != nil || c != (Change{})):
			t.Errorf("a graceful end: %v, %v", c, err)
		case !revisionOf(version).modern && !errors.Is(err, ErrClosed):
			t.Errorf("a lost session: %v, %v", c, err)
		}
	})
}

// A session that is over has nobody who could end a subscription.
func TestNothingIsListenedToAfterTheEnd(t *testing.T) {
	shows(t, "subs.close.abrupt")
	everyVersion(t, func(t *testing.T, version string) {
		leakCheck(t)
		ct, st := InMemory()
		ss, err := testServer(nil).Connect(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := NewClient(Implementation{Name: "c", Version: "1"}, &ClientOptions{Versions: []string{version}}).Connect(t.Context(), ct)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		ss.Close()
		cs.Wait()
		if sub, err := cs.Listen(t.Context(), SubscriptionFilter{ToolsListChanged: true}); sub != nil || !errors.Is(err, ErrClosed) {
			t.Errorf("a subscription %v, %v", sub, err)
		}
	})
}
