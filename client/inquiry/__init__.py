"""What is known of one transaction, asked by an operator."""
