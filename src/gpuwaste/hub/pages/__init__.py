"""The pages of the hub: what is asked, within what the reader may see, and the answer with its headers."""
