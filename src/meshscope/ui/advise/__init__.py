"""The advise screen apart from its widget: what is asked, what came back, and how both are drawn. All pure."""
