"""An abort storm over real NIXL."""
